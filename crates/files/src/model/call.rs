//! A system call, as recorded.

use std::fmt;
use std::sync::Arc;

use iosonar_trace::{Nanos, Row};

use super::kind::CallKind;
use super::metadata::Metadata;

/// The descriptor argument that means the working directory: `AT_FDCWD`.
pub const AT_FDCWD: i32 = -100;

/// A path as a program gave it: any bytes but NUL. Cheap to copy.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<[u8]>);

impl Name {
    /// The bytes of the path, which need not be UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it begins at the root.
    pub fn is_absolute(&self) -> bool {
        self.0.first() == Some(&b'/')
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Arc<[u8]>> for Name {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(bytes)
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(&self.0).fmt(f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(&self.0).fmt(f)
    }
}

/// A system call of a thread. Arguments that the call does not have, or that are unknown, are `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// When it began, since the trace's zero.
    pub begin: Nanos,
    /// How long it took; `None` if it did not return (`exit`, or the trace ended first).
    pub duration: Option<Nanos>,
    /// The thread that made it (the kernel's thread number).
    pub thread: u32,
    /// The process of the thread; 0 if unknown.
    pub process: u32,
    /// Which call.
    pub kind: CallKind,
    /// Whether a ring of io_uring executed it, in place of a system call.
    pub is_uring: bool,
    /// The first descriptor argument: of `read(fd)`, the directory of `openat(dirfd, …)`, the old one of `dup2`. For calls
    /// with two paths the directory of the first one. `pipe`, `socketpair`: the first of the new ones.
    pub fd: Option<i32>,
    /// The second descriptor argument: the new one of `dup2`, the directory of the second path, the input of `sendfile`, the
    /// output of `copy_file_range` and `splice`, the last of `close_range` (at most `i32::MAX`). `pipe`, `socketpair`: the
    /// second of the new ones. `symlinkat`: the directory of the new name. `fcntl`: its argument as a number, for the
    /// commands that take one: the lowest descriptor of `F_DUPFD`, `FD_CLOEXEC` of `F_SETFD`, the flags of `F_SETFL`.
    pub fd2: Option<i32>,
    /// The path that `fd` referred to, where the recorder knows it.
    pub fd_path: Option<Name>,
    /// The first path argument, as given. `symlink`: the target, as given. `getcwd`: the result. `bind`: the name of a Unix
    /// socket, unless it is abstract.
    pub path: Option<Name>,
    /// The second path argument. `symlink`: the new name. `readlink`: the target that it returned, where known whole.
    pub path2: Option<Name>,
    /// Bytes from the start of the file, where the call states them: `pread64`, `fallocate`, `lseek` (its argument).
    pub offset: Option<i64>,
    /// The same in the second descriptor's file: the output of `copy_file_range` and `splice`.
    pub offset2: Option<i64>,
    /// Bytes that were asked for; the sum over all buffers. `truncate`: the new size. `fallocate`: the length.
    pub length: Option<u64>,
    /// Its flags: of opening, of `*at` calls, of `clone`, the command of `fcntl`, `whence` of `lseek`, mode of `fallocate`
    /// and `access`, `RWF_` of `preadv2`. `faccessat2`: the mode and the flags together, which have no bit in common.
    pub flags: u64,
    /// The permissions that it sets: of new files and directories, `chmod`; `mknod`: with the kind of file.
    pub mode: Option<u32>,
    /// What it returned; -1 if it failed; `None` if it did not return.
    pub result: Option<i64>,
    /// Why it failed, else 0.
    pub errno: i32,
    /// How long its thread was blocked since the end of the row before, where the recorder knows it: in calls without rows,
    /// such as `futex` and `nanosleep`.
    pub waited: Option<Nanos>,
    /// The container of its process; `None` outside of containers, or if unknown.
    pub container: Option<Name>,
}

impl Row for Call {
    type Metadata = Metadata;
    const NOUN: &'static str = "call";

    fn problem(&self) -> Option<&'static str> {
        self.problem_of_times()
    }
}

impl Call {
    /// A call with no arguments that took no time and returned 0.
    pub fn new(begin: Nanos, thread: u32, kind: CallKind) -> Self {
        Self {
            begin,
            duration: Some(Nanos::ZERO),
            thread,
            process: 0,
            kind,
            is_uring: false,
            fd: None,
            fd2: None,
            fd_path: None,
            path: None,
            path2: None,
            offset: None,
            offset2: None,
            length: None,
            flags: 0,
            mode: None,
            result: Some(0),
            errno: 0,
            waited: None,
            container: None,
        }
    }

    /// When it returned; `None` if it did not.
    pub fn end(&self) -> Option<Nanos> {
        self.duration.map(|duration| self.begin + duration)
    }

    /// Whether it returned without an error.
    pub fn succeeded(&self) -> bool {
        self.errno == 0 && self.result.is_some_and(|result| result >= 0)
    }
}
