//! A random program: it is executed as it is generated, and its calls are recorded with their results.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use iosonar_files::{AT_FDCWD, Call, CallKind, Name};
use iosonar_trace::Nanos;
use rustix::fs::{Mode, OFlags};

use super::issue::{On, Returned, is_on_name, issue};
use super::random::Random;

/// From the start of a call to that of the next, and how long a call takes.
const STEP: i64 = 100;
const DURATION: i64 = 50;

/// A process of the program. Its descriptors are descriptors of the test under other numbers; `fork` and `dup` duplicate
/// them, so they share open file descriptions as in the program.
struct Process {
    number: u32,
    threads: Vec<u32>,
    cwd: OwnedFd,
    descriptors: BTreeMap<i32, OwnedFd>,
}

/// A program that runs in a directory.
pub struct Program {
    random: Random,
    root: OwnedFd,
    processes: Vec<Process>,
    calls: Vec<Call>,
    next_number: u32,
    /// Names of calls that succeeded.
    known: Vec<Name>,
}

/// Runs a random program of so many calls in an empty directory, which it sees as `/`.
pub fn run(seed: u64, calls: usize, root: &Path) -> Vec<Call> {
    let open = || rustix::fs::open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let first = Process { number: 100, threads: vec![100, 101, 102], cwd: open(), descriptors: BTreeMap::new() };
    let mut program = Program {
        random: Random(seed),
        root: open(),
        processes: vec![first],
        calls: Vec::new(),
        next_number: 103,
        known: Vec::new(),
    };
    while program.calls.len() < calls {
        program.step();
    }
    program.calls
}

impl Program {
    fn step(&mut self) {
        let at = self.random.below(self.processes.len());
        let process = &self.processes[at];
        let thread = *self.random.pick(&process.threads);
        let begin = Nanos(self.calls.len() as i64 * STEP);
        let mut call = Call::new(begin, thread, CallKind::Openat);
        call.duration = Some(Nanos(DURATION));
        call.process = process.number;
        let has_descriptors = !process.descriptors.is_empty();
        match self.random.below(100) {
            0 if self.processes.len() < 4 => self.fork(at, call),
            1 if self.processes.len() > 1 => self.exit(at, call),
            2..=9 if has_descriptors => self.dup(at, call),
            10..=21 if has_descriptors => self.close(at, call),
            22..=54 if has_descriptors => self.on_descriptor(at, call),
            55..=74 => self.open(at, call),
            _ => self.on_name(at, call),
        }
    }

    fn fork(&mut self, at: usize, mut call: Call) {
        call.kind = CallKind::Fork;
        let child = self.next_number;
        self.next_number += 3;
        call.result = Some(child.into());
        let parent = &self.processes[at];
        let duplicate = |fd: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(fd, 0).unwrap();
        let descriptors = parent.descriptors.iter().map(|(&number, fd)| (number, duplicate(fd))).collect();
        let process = Process { number: child, threads: vec![child], cwd: duplicate(&parent.cwd), descriptors };
        self.processes.push(process);
        self.calls.push(call);
    }

    fn exit(&mut self, at: usize, mut call: Call) {
        call.kind = CallKind::ExitGroup;
        (call.duration, call.result) = (None, None);
        self.processes.remove(at);
        self.calls.push(call);
    }

    fn dup(&mut self, at: usize, mut call: Call) {
        let old = self.any_descriptor(at);
        let process = &mut self.processes[at];
        let duplicate = rustix::io::fcntl_dupfd_cloexec(&process.descriptors[&old], 0).unwrap();
        call.fd = Some(old);
        let new = if self.random.one_in(2) {
            call.kind = CallKind::Dup2;
            let new = 3 + self.random.below(6) as i32;
            call.fd2 = Some(new);
            new
        } else {
            call.kind = CallKind::Dup;
            lowest_free(process)
        };
        call.result = Some(new.into());
        // The old one closes after `dup2`, unless both are the same.
        if new != old {
            self.processes[at].descriptors.insert(new, duplicate);
        }
        self.calls.push(call);
    }

    fn close(&mut self, at: usize, mut call: Call) {
        call.kind = CallKind::Close;
        let fd = self.any_descriptor(at);
        call.fd = Some(fd);
        self.processes[at].descriptors.remove(&fd);
        self.calls.push(call);
    }

    fn on_descriptor(&mut self, at: usize, mut call: Call) {
        use CallKind::*;
        call.kind = *self.random.pick(&[
            Read,
            Read,
            Write,
            Write,
            Pread64,
            Pwrite64,
            Lseek,
            Lseek,
            Ftruncate,
            Fallocate,
            Fstat,
            Fsync,
            Getdents64,
            Getdents64,
            CopyFileRange,
            Sendfile,
        ]);
        call.fd = Some(self.any_descriptor(at));
        match call.kind {
            Read | Write | Ftruncate => call.length = Some(self.random.below(3000) as u64),
            Pread64 | Pwrite64 => {
                call.length = Some(self.random.below(3000) as u64);
                call.offset = Some(self.random.below(5000) as i64);
            }
            Lseek => {
                call.flags = self.random.below(3) as u64;
                call.offset = Some(if call.flags == 0 { self.random.below(4000) as i64 } else { 0 });
                if self.random.one_in(3) {
                    (call.flags, call.offset) = (0, Some(0));
                }
            }
            Fallocate => {
                call.flags = self.random.pick(&[0, libc::FALLOC_FL_KEEP_SIZE]).to_owned() as u64;
                call.length = Some(1 + self.random.below(3000) as u64);
                call.offset = Some(self.random.below(5000) as i64);
            }
            CopyFileRange | Sendfile => {
                call.length = Some(self.random.below(3000) as u64);
                call.fd2 = Some(self.any_descriptor(at));
            }
            Getdents64 => call.length = Some(16384),
            _ => {}
        }
        self.finish(at, call);
    }

    fn open(&mut self, at: usize, mut call: Call) {
        let flags: [i32; 11] = [
            libc::O_RDONLY,
            libc::O_WRONLY,
            libc::O_RDWR,
            libc::O_RDWR | libc::O_CREAT,
            libc::O_RDWR | libc::O_CREAT,
            libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL,
            libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC,
            libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND,
            libc::O_RDONLY | libc::O_DIRECTORY,
            libc::O_RDONLY | libc::O_DIRECTORY,
            libc::O_RDONLY | libc::O_NOFOLLOW,
        ];
        call.flags = *self.random.pick(&flags) as u64;
        call.mode = Some(0o644);
        call.fd = Some(AT_FDCWD);
        self.name_or_relative(at, &mut call);
        self.finish(at, call);
    }

    fn on_name(&mut self, at: usize, mut call: Call) {
        use CallKind::*;
        call.kind = *self.random.pick(&[
            Mkdir, Mkdir, Mkdir, Mkdirat, Rmdir, Unlink, Unlink, Unlinkat, Rename, Rename, Renameat2, Link, Symlink,
            Readlink, Newfstatat, Stat, Lstat, Access, Chmod, Chdir,
        ]);
        call.mode = matches!(call.kind, Mkdir | Mkdirat).then_some(0o755);
        if call.kind == Chmod {
            call.mode = Some(0o700);
        }
        match call.kind {
            Mkdirat | Unlinkat | Newfstatat => {
                call.fd = Some(AT_FDCWD);
                self.name_or_relative(at, &mut call);
            }
            _ => call.path = Some(self.name()),
        }
        match call.kind {
            Unlinkat if self.random.one_in(2) => call.flags = libc::AT_REMOVEDIR as u64,
            Newfstatat if self.random.one_in(2) => call.flags = libc::AT_SYMLINK_NOFOLLOW as u64,
            Rename | Link => call.path2 = Some(self.name()),
            Renameat2 => {
                call.path2 = Some(self.name());
                call.flags = self.random.pick(&[0u32, libc::RENAME_NOREPLACE, libc::RENAME_EXCHANGE]).to_owned().into();
                (call.fd, call.fd2) = (Some(AT_FDCWD), Some(AT_FDCWD));
            }
            Symlink => {
                call.path = Some(Name::from(*self.random.pick(&["a", "b", "c", "a/b", "d"])));
                call.path2 = Some(self.name());
            }
            _ => {}
        }
        self.finish(at, call);
    }

    /// Issues a call on files, and records it.
    fn finish(&mut self, at: usize, mut call: Call) {
        let process = &mut self.processes[at];
        let empty = Name::from("");
        let place = |fd: Option<i32>, path: &Option<Name>| {
            let path = path.clone().unwrap_or(empty.clone());
            let is_absolute = path.is_absolute();
            let path: Vec<u8> = match path.as_bytes() {
                b"/" => b".".to_vec(),
                bytes if is_absolute => bytes[1..].to_vec(),
                bytes => bytes.to_vec(),
            };
            let directory = match fd {
                _ if is_absolute => self.root.as_fd(),
                Some(fd) if fd != AT_FDCWD => process.descriptors[&fd].as_fd(),
                _ => process.cwd.as_fd(),
            };
            (directory, path)
        };
        let on_name = is_on_name(call.kind);
        let (at, path) = place(call.fd.filter(|_| on_name), &call.path);
        let (at2, path2) = place(call.fd2.filter(|_| on_name), &call.path2);
        let descriptor = |fd: Option<i32>| fd.filter(|_| !on_name).map(|fd| process.descriptors[&fd].as_fd());
        let (fd, fd2) = (descriptor(call.fd), descriptor(call.fd2));
        match issue(&call, On { fd, fd2, at: (at, &path), at2: (at2, &path2) }) {
            Returned::Failed(errno) => (call.result, call.errno) = (Some(-1), errno.raw_os_error()),
            Returned::Number(number) => call.result = Some(number),
            Returned::Descriptor(directory) if call.kind == CallKind::Chdir => process.cwd = directory,
            Returned::Descriptor(file) => {
                let number = lowest_free(process);
                process.descriptors.insert(number, file);
                call.result = Some(number.into());
            }
        }
        if call.succeeded() {
            let absolute = [&call.path, &call.path2].into_iter().flatten().filter(|path| path.is_absolute());
            self.known.extend(absolute.cloned());
        }
        self.calls.push(call);
    }

    fn any_descriptor(&mut self, at: usize) -> i32 {
        let numbers: Vec<i32> = self.processes[at].descriptors.keys().copied().collect();
        *self.random.pick(&numbers)
    }

    /// A path, now and then below a descriptor, which may be no directory.
    fn name_or_relative(&mut self, at: usize, call: &mut Call) {
        call.path = Some(self.name());
        if self.random.one_in(4) && !self.processes[at].descriptors.is_empty() {
            call.fd = Some(self.any_descriptor(at));
            call.path = Some(Name::from(*self.random.pick(&["a", "b", "c"])));
        }
    }

    /// Few names, so that calls meet.
    fn name(&mut self) -> Name {
        if !self.known.is_empty() && self.random.one_in(3) {
            let recent = &self.known[self.known.len().saturating_sub(12)..];
            return self.random.pick(recent).clone();
        }
        let mut path = String::new();
        if !self.random.one_in(4) {
            path.push('/');
        }
        for depth in 0..3 {
            let part = *self.random.pick(&["a", "b", "c", "d"]);
            path.push_str(part);
            if self.random.one_in(2) || depth == 2 {
                break;
            }
            let part = *self.random.pick(&["/", "/", "/", "/", "/", "//", "/./", "/../"]);
            path.push_str(part);
        }
        Name::from(path.as_str())
    }
}

fn lowest_free(process: &Process) -> i32 {
    (3..).find(|number| !process.descriptors.contains_key(number)).unwrap()
}
