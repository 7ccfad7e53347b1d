"""System calls by name: their family, as in crates/files/src/model/kind.rs, and their series in diagrams."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

FAMILIES: dict[str, tuple[str, ...]] = {
    "open": (
        "open",
        "openat",
        "openat2",
        "creat",
    ),
    "close": (
        "close",
        "close_range",
    ),
    "read": (
        "read",
        "readv",
        "pread64",
        "preadv",
        "preadv2",
    ),
    "write": (
        "write",
        "writev",
        "pwrite64",
        "pwritev",
        "pwritev2",
    ),
    "seek": ("lseek",),
    "copy": (
        "sendfile",
        "copy_file_range",
        "splice",
        "tee",
        "vmsplice",
    ),
    "sync": (
        "fsync",
        "fdatasync",
        "sync_file_range",
        "sync",
        "syncfs",
        "msync",
    ),
    "resize": (
        "truncate",
        "ftruncate",
        "fallocate",
    ),
    "advise": (
        "fadvise64",
        "readahead",
        "flock",
    ),
    "stat": (
        "stat",
        "lstat",
        "fstat",
        "newfstatat",
        "statx",
        "access",
        "faccessat",
        "faccessat2",
        "readlink",
        "readlinkat",
        "statfs",
        "fstatfs",
        "getxattr",
        "lgetxattr",
        "fgetxattr",
        "listxattr",
        "llistxattr",
        "flistxattr",
        "name_to_handle_at",
    ),
    "list": (
        "getdents",
        "getdents64",
    ),
    "create": (
        "mkdir",
        "mkdirat",
        "mknod",
        "mknodat",
        "symlink",
        "symlinkat",
        "link",
        "linkat",
    ),
    "remove": (
        "unlink",
        "unlinkat",
        "rmdir",
    ),
    "rename": (
        "rename",
        "renameat",
        "renameat2",
    ),
    "attribute": (
        "chmod",
        "fchmod",
        "fchmodat",
        "fchmodat2",
        "chown",
        "lchown",
        "fchown",
        "fchownat",
        "utime",
        "utimes",
        "utimensat",
        "futimesat",
        "setxattr",
        "lsetxattr",
        "fsetxattr",
        "removexattr",
        "lremovexattr",
        "fremovexattr",
    ),
    "directory": (
        "chdir",
        "fchdir",
        "getcwd",
        "chroot",
        "umask",
    ),
    "descriptor": (
        "dup",
        "dup2",
        "dup3",
        "fcntl",
        "ioctl",
    ),
    "process": (
        "clone",
        "clone3",
        "fork",
        "vfork",
        "execve",
        "execveat",
        "exit",
        "exit_group",
        "wait4",
        "waitid",
        "kill",
        "unshare",
        "setns",
    ),
    "map": (
        "mmap",
        "munmap",
        "mremap",
    ),
    "other": (
        "pipe",
        "pipe2",
        "socket",
        "socketpair",
        "accept",
        "accept4",
        "connect",
        "bind",
        "listen",
        "shutdown",
        "sendto",
        "recvfrom",
        "sendmsg",
        "recvmsg",
        "sendmmsg",
        "recvmmsg",
        "getsockname",
        "getpeername",
        "getsockopt",
        "setsockopt",
        "eventfd",
        "eventfd2",
        "epoll_create",
        "epoll_create1",
        "timerfd_create",
        "signalfd",
        "signalfd4",
        "memfd_create",
        "memfd_secret",
        "inotify_init",
        "inotify_init1",
        "inotify_add_watch",
        "fanotify_init",
        "pidfd_open",
        "pidfd_getfd",
        "userfaultfd",
        "perf_event_open",
        "bpf",
        "open_by_handle_at",
        "open_tree",
        "fsopen",
        "fspick",
        "fsmount",
        "move_mount",
        "mount",
        "umount2",
        "pivot_root",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "io_setup",
        "io_submit",
        "io_getevents",
        "mq_open",
        "landlock_create_ruleset",
        "swapon",
        "quotactl",
    ),
}
"""The calls of each family."""


class CallSeries(IntEnum):
    """The series of a call in diagrams. Later ones are drawn over earlier ones."""

    READ = 0
    WRITE = 1
    SYNC = 2
    METADATA = 3
    OTHER = 4

    @property
    def title(self) -> str:
        """The name in legends."""
        return _TITLES[self]


_TITLES = {
    CallSeries.READ: "Reads",
    CallSeries.WRITE: "Writes",
    CallSeries.SYNC: "Syncs",
    CallSeries.METADATA: "Names and attributes",
    CallSeries.OTHER: "Descriptors and processes",
}

MOVES_DATA = ("read", "write", "copy")
"""Families whose result is a number of bytes of a file."""

_SERIES = {
    CallSeries.READ: ("read",),
    CallSeries.WRITE: ("write", "copy"),
    CallSeries.SYNC: ("sync",),
    CallSeries.METADATA: ("open", "resize", "stat", "list", "create", "remove", "rename", "attribute"),
}
"""Families by series. `close`, `lseek`, and calls on processes and sockets touch no name and no content."""


def names_of(*families: str) -> tuple[str, ...]:
    """The calls of some families."""
    return tuple(name for family in families for name in FAMILIES[family])


def series_of_call(call: ir.StringColumn) -> ir.IntegerColumn:
    """The number of each call's series, as int8."""
    import ibis

    branches = ((call.isin(names_of(*families)), int(series)) for series, families in _SERIES.items())
    return ibis.cases(*branches, else_=int(CallSeries.OTHER)).cast("int8")
