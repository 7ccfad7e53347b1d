//! What the arguments of each call mean.

use super::names::Names;
use super::split::{Arguments, Problem};
use super::values::{Quoted, buffer_bytes, descriptor, field, list, number, quoted};
use crate::model::ioctl::{FICLONE, FICLONERANGE, FIDEDUPERANGE};
use crate::{Call, CallKind};

/// Fills in the arguments of a call. Those that are missing are an error only if the call returned.
pub fn fill(call: &mut Call, arguments: &Arguments<'_>, names: &mut Names) -> Result<(), Problem> {
    let mut filler = Filler { call, arguments, names };
    filler.fill()?;
    filler.attribute_name()
}

struct Filler<'a, 'b> {
    call: &'a mut Call,
    arguments: &'a Arguments<'b>,
    names: &'a mut Names,
}

impl<'b> Filler<'_, 'b> {
    fn fill(&mut self) -> Result<(), Problem> {
        use CallKind as K;
        match self.call.kind {
            K::Open => {
                self.path(0)?;
                self.flags(1);
                self.mode(2)
            }
            K::Openat => {
                self.fd(0)?;
                self.path(1)?;
                self.flags(2);
                self.mode(3)
            }
            K::Openat2 => {
                self.fd(0)?;
                self.path(1)?;
                let how = self.at(2);
                if let Some(flags) = field(how, b"flags") {
                    self.call.flags = self.names.flags(flags);
                }
                self.call.mode = field(how, b"mode").map(|mode| self.names.flags(mode) as u32);
                self.call.offset = field(how, b"resolve").map(|resolve| self.names.flags(resolve) as i64);
                Ok(())
            }
            K::Creat | K::Mkdir | K::Mknod | K::Chmod => {
                self.path(0)?;
                self.mode(1)
            }
            K::Close
            | K::Fsync
            | K::Fdatasync
            | K::Syncfs
            | K::Fstatfs
            | K::Fchdir
            | K::Dup
            | K::Fremovexattr
            | K::Fchown
            | K::Accept
            | K::Connect
            | K::Listen
            | K::Sendmmsg
            | K::Recvmmsg
            | K::Getsockname
            | K::Getpeername
            | K::Getsockopt
            | K::Setsockopt
            | K::IoUringEnter
            | K::IoUringRegister => self.fd(0),
            K::Bind => {
                self.fd(0)?;
                self.socket_name(1)
            }
            K::CloseRange => {
                self.range_end(1)?;
                self.fd(0)?;
                self.flags(2);
                Ok(())
            }
            K::Read | K::Write | K::Getdents | K::Getdents64 => {
                self.fd(0)?;
                self.length(2)
            }
            K::Pread64 | K::Pwrite64 => {
                self.fd(0)?;
                self.length(2)?;
                self.offset(3)
            }
            K::Readv | K::Writev | K::Vmsplice => {
                self.fd(0)?;
                self.call.length = buffer_bytes(self.at(1));
                if self.call.kind == K::Vmsplice {
                    self.flags(3);
                }
                Ok(())
            }
            K::Preadv | K::Pwritev | K::Preadv2 | K::Pwritev2 => {
                self.fd(0)?;
                self.call.length = buffer_bytes(self.at(1));
                self.flags(4);
                self.offset(3)
            }
            // `_llseek(3, 5, [5], SEEK_SET) = 0`: the position is behind a pointer.
            K::Lseek if !self.at(3).is_empty() => {
                self.fd(0)?;
                self.flags(3);
                if let Some(position) = self.offset_at_pointer(2).filter(|_| self.call.result == Some(0)) {
                    self.call.result = Some(position);
                }
                self.offset(1)
            }
            K::Lseek => {
                self.fd(0)?;
                self.flags(2);
                self.offset(1)
            }
            K::Sendfile => {
                self.fd(0)?;
                self.fd2(1)?;
                self.call.offset = self.offset_at_pointer(2);
                self.length(3)
            }
            K::CopyFileRange | K::Splice => {
                self.fd(0)?;
                self.fd2(2)?;
                self.call.offset = self.offset_at_pointer(1);
                self.call.offset2 = self.offset_at_pointer(3);
                self.flags(5);
                self.length(4)
            }
            K::Tee => {
                self.fd(0)?;
                self.fd2(1)?;
                self.flags(3);
                self.length(2)
            }
            K::SyncFileRange => {
                self.fd(0)?;
                self.flags(3);
                self.offset(1)?;
                self.length(2)
            }
            K::Msync => {
                self.flags(2);
                self.length(1)
            }
            K::Truncate => {
                self.path(0)?;
                self.length(1)
            }
            K::Ftruncate => {
                self.fd(0)?;
                self.length(1)
            }
            K::Fallocate => {
                self.fd(0)?;
                self.flags(1);
                self.offset(2)?;
                self.length(3)
            }
            K::Fadvise64 => {
                self.fd(0)?;
                self.flags(3);
                self.offset(1)?;
                self.length(2)
            }
            K::Readahead => {
                self.fd(0)?;
                self.offset(1)?;
                self.length(2)
            }
            K::Flock | K::Setns | K::Shutdown | K::PidfdOpen => {
                self.flags(1);
                if self.call.kind == K::PidfdOpen { Ok(()) } else { self.fd(0) }
            }
            K::Fstat => {
                self.fd(0)?;
                self.found_mode(1, b"st_mode");
                Ok(())
            }
            K::Stat | K::Lstat => {
                self.found_mode(1, b"st_mode");
                self.path(0)
            }
            K::Statfs
            | K::Removexattr
            | K::Lremovexattr
            | K::Chown
            | K::Lchown
            | K::Utime
            | K::Utimes
            | K::Rmdir
            | K::Unlink
            | K::Chdir
            | K::Chroot
            | K::Swapon
            | K::Execve => self.path(0),
            K::Newfstatat | K::Utimensat => {
                self.fd(0)?;
                if self.call.kind == K::Newfstatat {
                    self.found_mode(2, b"st_mode");
                }
                self.flags(3);
                self.path(1)
            }
            K::Statx => {
                self.fd(0)?;
                self.flags(2);
                self.found_mode(4, b"stx_mode");
                self.path(1)
            }
            K::Unlinkat | K::OpenTree | K::OpenTreeAttr | K::MountSetattr | K::Faccessat | K::InotifyAddWatch => {
                self.fd(0)?;
                self.flags(2);
                self.path(1)
            }
            K::Faccessat2 => {
                self.fd(0)?;
                self.call.flags = self.names.flags(self.at(2)) | self.names.flags(self.at(3));
                self.path(1)
            }
            K::Access | K::Fspick | K::Umount2 => {
                self.flags(1);
                self.path(0)
            }
            K::Readlink => {
                self.path(0)?;
                self.length(2)?;
                self.link_target(1)
            }
            K::Listxattr | K::Llistxattr => {
                self.path(0)?;
                self.length(2)
            }
            K::Readlinkat => {
                self.fd(0)?;
                self.path(1)?;
                self.length(3)?;
                self.link_target(2)
            }
            K::Getxattr | K::Lgetxattr => {
                self.path(0)?;
                self.length(3)
            }
            K::Fgetxattr => {
                self.fd(0)?;
                self.length(3)
            }
            K::Flistxattr => {
                self.fd(0)?;
                self.length(2)
            }
            K::Setxattr | K::Lsetxattr => {
                self.path(0)?;
                self.flags(4);
                self.length(3)
            }
            K::Fsetxattr => {
                self.fd(0)?;
                self.flags(4);
                self.length(3)
            }
            K::Setxattrat | K::Getxattrat | K::Listxattrat | K::Removexattrat => {
                self.fd(0)?;
                self.flags(2);
                self.path(1)
            }
            K::FileGetattr | K::FileSetattr => {
                self.fd(0)?;
                self.flags(4);
                self.path(1)
            }
            K::NameToHandleAt | K::Fchownat | K::Execveat => {
                self.fd(0)?;
                self.flags(4);
                self.path(1)
            }
            K::Mkdirat | K::Mknodat => {
                self.fd(0)?;
                self.path(1)?;
                self.mode(2)
            }
            K::Symlink | K::Link | K::Rename | K::PivotRoot => {
                self.path(0)?;
                self.path2(1)
            }
            K::Mount => {
                self.path(0)?;
                self.flags(3);
                self.path2(1)
            }
            K::Symlinkat => {
                self.path(0)?;
                self.fd2(1)?;
                self.path2(2)
            }
            K::Linkat | K::Renameat | K::Renameat2 | K::MoveMount => {
                self.fd(0)?;
                self.path(1)?;
                self.fd2(2)?;
                self.flags(4);
                self.path2(3)
            }
            K::Fchmod => {
                self.fd(0)?;
                self.mode(1)
            }
            K::Fchmodat | K::Fchmodat2 => {
                self.fd(0)?;
                self.path(1)?;
                self.flags(3);
                self.mode(2)
            }
            K::Futimesat => {
                self.fd(0)?;
                self.path(1)
            }
            K::Getcwd => {
                // Unless it failed, this is the result.
                if self.at(0).first() == Some(&b'"') {
                    self.path(0)?;
                }
                self.length(1)
            }
            K::Umask => self.mode(0),
            K::Dup2 | K::Dup3 => {
                self.fd(0)?;
                self.flags(2);
                self.fd2(1)
            }
            K::Fcntl => {
                self.fd(0)?;
                self.flags(1);
                self.fcntl_argument();
                Ok(())
            }
            K::Ioctl => {
                self.fd(0)?;
                self.ioctl_request();
                self.ioctl_argument();
                Ok(())
            }
            K::Clone => {
                self.named_flags();
                Ok(())
            }
            K::Clone3 => {
                let flags = field(self.at(0), b"flags").map_or(0, |flags| self.names.flags(flags));
                let signal = field(self.at(0), b"exit_signal").map_or(0, |signal| self.names.flags(signal));
                self.call.flags = flags | signal;
                Ok(())
            }
            K::Unshare | K::EpollCreate1 | K::InotifyInit1 | K::MemfdSecret | K::Userfaultfd => {
                self.flags(0);
                Ok(())
            }
            K::Mmap => {
                self.flags(3);
                self.mode(2)?;
                // Without a file the descriptor is -1.
                if number(self.at(4)).is_some_and(|fd| fd as i32 >= 0) {
                    self.fd(4)?;
                }
                self.offset(5)?;
                self.length(1)
            }
            K::Munmap => self.length(1),
            K::Mremap => {
                self.flags(3);
                self.length(2)
            }
            K::Pipe => {
                self.pair(0);
                Ok(())
            }
            K::Pipe2 => {
                self.pair(0);
                self.flags(1);
                Ok(())
            }
            K::Socketpair => {
                self.flags(1);
                self.pair(3);
                Ok(())
            }
            K::Socket | K::Eventfd2 | K::TimerfdCreate | K::MemfdCreate | K::Fsopen => {
                self.flags(1);
                Ok(())
            }
            K::Accept4 => {
                self.flags(3);
                self.fd(0)
            }
            K::Sendto | K::Recvfrom => {
                self.fd(0)?;
                self.flags(3);
                self.length(2)
            }
            K::Sendmsg | K::Recvmsg => {
                self.fd(0)?;
                self.flags(2);
                self.call.length = field(self.at(1), b"msg_iov").and_then(buffer_bytes);
                Ok(())
            }
            K::Signalfd | K::Signalfd4 => {
                self.flags(3);
                self.fd(0)
            }
            K::OpenByHandleAt | K::PidfdGetfd => {
                self.flags(2);
                self.fd(0)
            }
            K::Fsmount => {
                self.flags(1);
                self.fd(0)
            }
            K::MqOpen => {
                self.path(0)?;
                self.flags(1);
                self.mode(2)
            }
            K::Sync
            | K::Fork
            | K::Vfork
            | K::Exit
            | K::ExitGroup
            | K::Wait4
            | K::Waitid
            | K::Kill
            | K::Eventfd
            | K::EpollCreate
            | K::InotifyInit
            | K::FanotifyInit
            | K::PerfEventOpen
            | K::Bpf
            | K::IoUringSetup
            | K::IoSetup
            | K::IoSubmit
            | K::IoGetevents
            | K::LandlockCreateRuleset
            | K::Quotactl => Ok(()),
        }
    }

    fn at(&self, position: usize) -> &'b [u8] {
        self.arguments.at(position)
    }

    /// Whether an argument is there; an error if it should be.
    fn has(&self, position: usize) -> Result<bool, Problem> {
        // What a call that did not return would still have printed is unknown: `read(3,  <unfinished ...>`.
        if !self.at(position).is_empty() {
            Ok(true)
        } else if self.call.result.is_none() {
            Ok(false)
        } else {
            Err("an argument is missing")
        }
    }

    fn fd(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            let (fd, annotation) = descriptor(self.at(position)).ok_or("a descriptor is not a number")?;
            self.call.fd = Some(fd);
            if let Some(annotation) = annotation {
                // A device has its number behind its path: `/dev/null<char 1:3>`.
                let length = memchr::memchr(b'<', annotation).unwrap_or(annotation.len());
                self.call.fd_path = Some(self.names.name(&annotation[..length])?);
            }
        }
        Ok(())
    }

    fn fd2(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            let (fd, _) = descriptor(self.at(position)).ok_or("a descriptor is not a number")?;
            self.call.fd2 = Some(fd);
        }
        Ok(())
    }

    /// The last descriptor of `close_range`, often the largest number of 32 bits.
    fn range_end(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            let last = number(self.at(position)).ok_or("a descriptor is not a number")?;
            self.call.fd2 = Some(i32::try_from(last as u32).unwrap_or(i32::MAX));
        }
        Ok(())
    }

    fn path(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            self.call.path = self.names.path(self.at(position))?;
        }
        Ok(())
    }

    /// The name of a Unix socket: `{sa_family=AF_UNIX, sun_path="/run/a"}`, without `sa_` or `sun_` in old versions. Abstract
    /// names, `sun_path=@"a"`, are no paths.
    fn socket_name(&mut self, position: usize) -> Result<(), Problem> {
        let address = self.at(position);
        let name = field(address, b"sun_path").or_else(|| field(address, b"path"));
        if let Some(name) = name.filter(|name| name.starts_with(b"\"")) {
            self.call.path = self.names.path(name)?;
        }
        Ok(())
    }

    /// What `readlink` returned, unless strace cut it off, or the buffer may have.
    fn link_target(&mut self, position: usize) -> Result<(), Problem> {
        let Some(bytes) = self.call.result.filter(|bytes| *bytes > 0) else { return Ok(()) };
        let has_room = self.call.length.is_some_and(|length| (bytes as u64) < length);
        if let Some(Quoted::Whole(target)) = quoted(self.at(position)).filter(|_| has_room) {
            let target = self.names.name(target).ok();
            self.call.path2 = target.filter(|target| target.as_bytes().len() as i64 == bytes);
        }
        Ok(())
    }

    fn path2(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            self.call.path2 = self.names.path(self.at(position))?;
        }
        Ok(())
    }

    fn length(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            let length = number(self.at(position)).ok_or("a length is not a number")?;
            self.call.length = Some(length as u64);
        }
        Ok(())
    }

    fn offset(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            self.call.offset = Some(number(self.at(position)).ok_or("an offset is not a number")?);
        }
        Ok(())
    }

    /// `[0] => [50]`, `[0]`, or `NULL`.
    fn offset_at_pointer(&self, position: usize) -> Option<i64> {
        self.at(position).strip_prefix(b"[").and_then(number)
    }

    fn flags(&mut self, position: usize) {
        let text = self.at(position);
        if !text.is_empty() {
            self.call.flags = self.names.flags(text);
        }
    }

    fn mode(&mut self, position: usize) -> Result<(), Problem> {
        let text = self.at(position);
        if !text.is_empty() {
            self.call.mode = Some(self.names.flags(text) as u32);
        }
        Ok(())
    }

    /// The name of an extended attribute that the call sets or removes, unless `-s 0` hides it.
    fn attribute_name(&mut self) -> Result<(), Problem> {
        use CallKind as K;
        let is_named = matches!(
            self.call.kind,
            K::Setxattr | K::Lsetxattr | K::Fsetxattr | K::Removexattr | K::Lremovexattr | K::Fremovexattr
        );
        if is_named && let Some(Quoted::Whole(name)) = quoted(self.at(1)) {
            self.call.path2 = Some(self.names.name(name)?);
        }
        Ok(())
    }

    /// Kind and permissions in the answer of a call that succeeded.
    fn found_mode(&mut self, position: usize, name: &[u8]) {
        let mode = field(self.at(position), name).filter(|_| self.call.succeeded());
        self.call.mode = mode.map(|mode| self.names.flags(mode) as u32);
    }

    /// `clone(child_stack=NULL, flags=CLONE_VM|SIGCHLD, …)`.
    fn named_flags(&mut self) {
        let flags = self.arguments.all().iter().find_map(|argument| argument.strip_prefix(b"flags="));
        if let Some(flags) = flags {
            self.call.flags = self.names.flags(flags);
        }
    }

    /// The descriptors that `pipe` made: `[3, 4]`.
    fn pair(&mut self, position: usize) {
        let made = list(self.at(position)).unwrap_or_default();
        if let [first, second] = made[..] {
            self.call.fd = descriptor(first).map(|(fd, _)| fd);
            self.call.fd2 = descriptor(second).map(|(fd, _)| fd);
        }
    }

    /// The argument of those commands that take a number.
    fn fcntl_argument(&mut self) {
        const F_NOTIFY: u64 = 1026;
        const F_DUPFD_CLOEXEC: u64 = 1030;
        const F_SETPIPE_SZ: u64 = 1031;
        const F_ADD_SEALS: u64 = 1033;
        let text = self.at(2);
        // F_DUPFD, F_SETFD, F_SETFL, F_SETOWN, F_SETSIG, F_SETLEASE.
        let takes_number = matches!(
            self.call.flags,
            0 | 2 | 4 | 8 | 10 | 1024 | F_NOTIFY | F_DUPFD_CLOEXEC | F_SETPIPE_SZ | F_ADD_SEALS
        );
        if takes_number && !text.is_empty() {
            self.call.fd2 = Some(match number(text) {
                Some(value) => value as i32,
                None => self.names.flags(text) as i32,
            });
        }
    }

    /// The request of `ioctl`, if it is one of those that concern files. The names of others are not noted.
    fn ioctl_request(&mut self) {
        let text = self.at(1);
        self.call.flags = match text.strip_prefix(b"_IOC(") {
            Some(parts) => request_of(parts, |name| self.names.flags(name)).unwrap_or(0),
            None => super::constants::flags(text, |_| {}),
        };
    }

    /// The argument of those requests that are replayed.
    fn ioctl_argument(&mut self) {
        let argument = self.at(2);
        let fd_of = |name| field(argument, name).and_then(descriptor).map(|(fd, _)| fd);
        let number_of = |name| field(argument, name).and_then(number);
        match u32::try_from(self.call.flags) {
            Ok(FICLONE) => self.call.fd2 = descriptor(argument).map(|(fd, _)| fd),
            Ok(FICLONERANGE) => {
                self.call.fd2 = fd_of(b"src_fd");
                self.call.offset = number_of(b"dest_offset");
                self.call.offset2 = number_of(b"src_offset");
                self.call.length = number_of(b"src_length").map(|length| length as u64);
            }
            Ok(FIDEDUPERANGE) => {
                let first = field(argument, b"info").and_then(list).and_then(|all| all.first().copied());
                let first = first.unwrap_or_default();
                self.call.fd2 = field(first, b"dest_fd").and_then(descriptor).map(|(fd, _)| fd);
                self.call.offset = number_of(b"src_offset");
                self.call.offset2 =
                    field(first, b"dest_offset").or_else(|| field(first, b"logical_offset")).and_then(number);
                self.call.length = number_of(b"src_length").map(|length| length as u64);
            }
            _ => {}
        }
    }
}

/// The number of `_IOC(_IOC_READ|_IOC_WRITE, 0x58, 0x2a, 0x30)`: direction, type, number and size. `parts` is behind the bracket.
fn request_of(parts: &[u8], mut flags: impl FnMut(&[u8]) -> u64) -> Option<u64> {
    let mut numbers = [0; 4];
    let mut all = parts.strip_suffix(b")")?.split(|&byte| byte == b',');
    for place in &mut numbers {
        *place = flags(all.next()?.trim_ascii());
    }
    let [direction, kind, number, size] = numbers;
    Some(direction << 30 | size << 16 | kind << 8 | number)
}
