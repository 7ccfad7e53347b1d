//! Random calls, executed in a directory of their own: what the state predicts agrees with the kernel.
#![allow(unsafe_code, reason = "changes the root directory of one thread")]

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use iosonar_trace::Nanos;
use proptest::prelude::*;
use rustix::fs::{
    self, AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, SeekFrom, linkat, mkdirat, openat, renameat_with,
    statat, symlinkat, unlinkat,
};
use rustix::io::{Errno, dup, pread, pwrite, read, write};

use super::super::names::{Lookup, ROOT};
use super::super::walk::{PathEvidence, WalkOptions};
use super::super::{Options, State};
use crate::snapshot::Kind;
use crate::{AT_FDCWD, Call, CallKind, Metadata, Name, ObjectId};

/// A call to execute: what it is, and what its arguments derive from.
type Draw = [u8; 8];

/// Executes calls, and resolves each as if it had been recorded.
struct Machine {
    state: State,
    open: Vec<OwnedFd>,
    now: i64,
    /// The calls so far, as strace shows them.
    calls: Vec<u8>,
    own_descriptors: OwnedFd,
}

fn path(seed: [u8; 2]) -> String {
    let names = ["a", "b", "c", "a", "b", ".", "..", "c"];
    let bits = u16::from_le_bytes(seed);
    let count = 1 + (bits & 3) % 3;
    let components = (0..count).map(|at| names[(bits >> (2 + 3 * at)) as usize & 7]);
    let text = components.collect::<Vec<_>>().join("/");
    match bits >> 11 & 31 {
        0 => format!("{text}/"),
        1..16 => format!("/{text}"),
        16 => format!("//{text}"),
        _ => text,
    }
}

impl Machine {
    fn new() -> Self {
        let mut state = State::new(&Metadata::default(), Options { cwd: Some("/".into()), ..Options::default() });
        state.names.object_mut(ROOT).unwrap().is_complete = true;
        let own_descriptors =
            fs::open("/proc/thread-self/fd", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        Self { state, open: Vec::new(), now: 0, calls: Vec::new(), own_descriptors }
    }

    /// Resolves a call with its result.
    fn record<T>(
        &mut self,
        kind: CallKind,
        result: &Result<T, Errno>,
        value: impl Fn(&T) -> i64,
        change: impl FnOnce(&mut Call),
    ) {
        let mut call = Call::new(Nanos(self.now), 1, kind);
        self.now += 10;
        call.duration = Some(Nanos(5));
        match result {
            Ok(found) => call.result = Some(value(found)),
            Err(error) => (call.result, call.errno) = (Some(-1), error.raw_os_error()),
        }
        change(&mut call);
        crate::strace::print(&mut self.calls, &call, 0);
        self.state.next(&call);
    }

    /// The failure, with all that is needed to see it again.
    fn failure(&self, error: &TestCaseError) -> TestCaseError {
        TestCaseError::fail(format!("{error}\n{}", String::from_utf8_lossy(&self.calls)))
    }

    /// The directory of a path: the working directory, or a descriptor, whatever it refers to.
    fn base(&self, seed: u8) -> (Option<usize>, i32) {
        match seed {
            0..160 => (None, AT_FDCWD),
            _ if self.open.is_empty() => (None, AT_FDCWD),
            _ => {
                let at = seed as usize % self.open.len();
                (Some(at), self.open[at].as_raw_fd())
            }
        }
    }

    fn call(&mut self, draw: Draw) {
        let (first, second) = (path([draw[1], draw[2]]), path([draw[3], draw[4]]));
        let ((base, fd), (base2, fd2)) = (self.base(draw[5]), self.base(draw[6]));
        let zero = |_: &()| 0;
        let mode = Mode::from_raw_mode(0o755);
        let names = |first: &str, second: Option<&str>, flags: u64| {
            let (first, second) = (Name::from(first), second.map(Name::from));
            move |call: &mut Call| {
                (call.fd, call.fd2, call.path, call.path2, call.flags) =
                    (Some(fd), Some(fd2), Some(first), second, flags);
            }
        };
        macro_rules! dir {
            ($base:expr) => {
                match $base {
                    Some(at) => self.open[at].as_fd(),
                    None => CWD,
                }
            };
        }
        match draw[0] % 24 {
            0..5 => {
                let sets = [
                    OFlags::RDONLY,
                    OFlags::RDWR | OFlags::CREATE,
                    OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
                    OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
                    OFlags::RDWR,
                    OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
                    OFlags::RDONLY | OFlags::DIRECTORY,
                    OFlags::RDONLY | OFlags::NOFOLLOW,
                ];
                let flags = sets[draw[7] as usize % sets.len()] | OFlags::CLOEXEC;
                let result = openat(dir!(base), &first, flags, mode);
                self.record(
                    CallKind::Openat,
                    &result,
                    |fd| fd.as_raw_fd().into(),
                    names(&first, None, flags.bits().into()),
                );
                self.open.extend(result);
            }
            5 | 6 => {
                let result = mkdirat(dir!(base), &first, mode);
                self.record(CallKind::Mkdirat, &result, zero, names(&first, None, 0));
            }
            7 => {
                let result = symlinkat(&first, dir!(base2), &second);
                self.record(CallKind::Symlinkat, &result, zero, names(&first, Some(&second), 0));
            }
            8 => {
                let follow = draw[7] & 1 == 0;
                let flags = if follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
                let result = linkat(dir!(base), &first, dir!(base2), &second, flags);
                self.record(CallKind::Linkat, &result, zero, names(&first, Some(&second), flags.bits().into()));
            }
            9 | 10 => {
                let flags = if draw[7] & 3 == 0 { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                let result = unlinkat(dir!(base), &first, flags);
                self.record(CallKind::Unlinkat, &result, zero, names(&first, None, flags.bits().into()));
            }
            11..14 => {
                let sets = [RenameFlags::empty(), RenameFlags::empty(), RenameFlags::NOREPLACE, RenameFlags::EXCHANGE];
                let flags = sets[draw[7] as usize & 3];
                let result = renameat_with(dir!(base), &first, dir!(base2), &second, flags);
                self.record(CallKind::Renameat2, &result, zero, names(&first, Some(&second), flags.bits().into()));
            }
            14 => {
                let result = rustix::process::chdir(&first);
                self.record(CallKind::Chdir, &result, zero, names(&first, None, 0));
            }
            15 => {
                let follow = draw[7] & 1 == 0;
                let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
                let result = statat(dir!(base), &first, flags);
                self.record(CallKind::Newfstatat, &result, |_| 0, names(&first, None, flags.bits().into()));
            }
            _ if self.open.is_empty() => {}
            kind => {
                let at = draw[1] as usize % self.open.len();
                let fd = self.open[at].as_raw_fd();
                let file = &self.open[at];
                let length = u64::from(draw[2]);
                let offset = u64::from(draw[3]) * 3;
                let mut buffer = vec![0; length as usize];
                let io = move |call: &mut Call| (call.fd, call.length) = (Some(fd), Some(length));
                let io_at = move |call: &mut Call| {
                    (call.fd, call.length, call.offset) = (Some(fd), Some(length), Some(offset as i64));
                };
                let bytes = |bytes: &usize| *bytes as i64;
                match kind {
                    16 => {
                        let result = read(file, &mut buffer[..]);
                        self.record(CallKind::Read, &result, bytes, io);
                    }
                    17 => {
                        let result = write(file, &buffer);
                        self.record(CallKind::Write, &result, bytes, io);
                    }
                    18 if draw[7] & 1 == 0 => {
                        let result = pread(file, &mut buffer[..], offset);
                        self.record(CallKind::Pread64, &result, bytes, io_at);
                    }
                    18 => {
                        let result = pwrite(file, &buffer, offset);
                        self.record(CallKind::Pwrite64, &result, bytes, io_at);
                    }
                    19 => {
                        let (whence, seek) = match draw[7] % 3 {
                            0 => (libc::SEEK_SET, SeekFrom::Start(offset)),
                            1 => (libc::SEEK_CUR, SeekFrom::Current(offset as i64 - 100)),
                            _ => (libc::SEEK_END, SeekFrom::End(offset as i64 - 100)),
                        };
                        let argument = if whence == libc::SEEK_SET { offset as i64 } else { offset as i64 - 100 };
                        let result = fs::seek(file, seek);
                        self.record(
                            CallKind::Lseek,
                            &result,
                            |at| *at as i64,
                            |call| {
                                (call.fd, call.offset, call.flags) = (Some(fd), Some(argument), whence as u64);
                            },
                        );
                    }
                    20 => {
                        let result = fs::ftruncate(file, offset);
                        self.record(CallKind::Ftruncate, &result, zero, |call| {
                            (call.fd, call.length) = (Some(fd), Some(offset));
                        });
                    }
                    21 => {
                        let result = dup(file);
                        self.record(CallKind::Dup, &result, |new| new.as_raw_fd().into(), |call| call.fd = Some(fd));
                        self.open.extend(result);
                    }
                    22 => {
                        let result = rustix::process::fchdir(file);
                        self.record(CallKind::Fchdir, &result, zero, |call| call.fd = Some(fd));
                    }
                    _ => {
                        drop(self.open.swap_remove(at));
                        self.record(CallKind::Close, &Ok(()), zero, |call| call.fd = Some(fd));
                    }
                }
            }
        }
    }

    /// Compares names, kinds, sizes and links with the kernel, and descriptors with their positions and paths.
    fn compare(&mut self) -> Result<(), TestCaseError> {
        let mut inodes = HashMap::new();
        self.compare_directory(Path::new("/"), ROOT, &mut inodes, 0)?;
        let table = self.state.processes.thread(1).map(|thread| thread.table);
        for file in &self.open {
            let fd = file.as_raw_fd();
            let slot = table.and_then(|table| self.state.processes.table(table)?.slots.get(&fd).copied());
            let Some(slot) = slot else {
                // It exists from the end of the call.
                continue;
            };
            let description = self.state.descriptions.get(slot.description);
            if description.skip.is_some() {
                continue;
            }
            let stat = fs::fstat(file).unwrap();
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                prop_assert_eq!(description.position, fs::seek(file, SeekFrom::Current(0)).ok(), "position of {}", fd);
            }
            let open = self.state.reopening(slot.description).unwrap();
            prop_assert_eq!(open.is_deleted, stat.st_nlink == 0, "whether the file of {} is deleted", fd);
            let target = fs::readlinkat(&self.own_descriptors, fd.to_string(), Vec::new()).unwrap();
            // A file with several names has one of them.
            let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            let has_other_name = target.as_bytes().ends_with(b" (deleted)") || (stat.st_nlink > 1 && !is_directory);
            if !open.is_deleted && !has_other_name {
                prop_assert_eq!(open.path.as_bytes(), target.as_bytes(), "path of {}", fd);
            }
        }
        Ok(())
    }

    fn compare_directory(
        &mut self,
        path: &Path,
        directory: ObjectId,
        inodes: &mut HashMap<u64, ObjectId>,
        depth: u32,
    ) -> Result<(), TestCaseError> {
        if depth > 6 {
            return Ok(());
        }
        let mut found = Vec::new();
        for entry in Dir::new(fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()).unwrap() {
            let name = entry.unwrap().file_name().to_str().unwrap().to_owned();
            if name != "." && name != ".." {
                found.push(name);
            }
        }
        for name in ["a", "b", "c"] {
            let lookup = self.state.names.lookup(directory, name.as_bytes());
            let below = path.join(name);
            if !found.iter().any(|found| found == name) {
                prop_assert_eq!(lookup, Lookup::Absent, "{}", below.display());
                continue;
            }
            let Lookup::Object(object) = lookup else {
                return Err(TestCaseError::fail(format!("{} is {lookup:?}", below.display())));
            };
            let stat = statat(CWD, &below, AtFlags::SYMLINK_NOFOLLOW).unwrap();
            prop_assert_eq!(*inodes.entry(stat.st_ino).or_insert(object), object, "inode of {}", below.display());
            let known = self.state.names.object(object).unwrap();
            prop_assert_eq!(known.kind, Kind::from_mode(stat.st_mode), "kind of {}", below.display());
            if known.kind == Some(Kind::File) {
                prop_assert_eq!(u64::from(known.links), stat.st_nlink as u64, "links of {}", below.display());
                prop_assert_eq!(
                    (known.size.bytes, known.size.is_exact),
                    (stat.st_size as u64, true),
                    "{}",
                    below.display()
                );
            }
            if known.kind == Some(Kind::Directory) {
                self.compare_directory(&below, object, inodes, depth + 1)?;
            } else if known.kind == Some(Kind::Link) {
                let how = WalkOptions { follow: true, is_entry: false, shows: PathEvidence::Nothing, kind: None };
                let text = below.to_str().unwrap();
                let object = self.state.names.walk(ROOT, ROOT, text.as_bytes(), how).ok().and_then(|walk| walk.object);
                let followed = fs::stat(&below).ok();
                let is_found = followed.is_some();
                prop_assert_eq!(object.is_some(), is_found, "target of {}", below.display());
            }
        }
        Ok(())
    }
}

/// Runs in a thread of its own, which has its own root and working directory.
fn run(draws: &[Draw], directory: &Path) -> Result<(), TestCaseError> {
    let mut machine = Machine::new();
    // SAFETY: concerns this thread alone.
    if unsafe { libc::unshare(libc::CLONE_FS) } != 0 || rustix::process::chroot(directory).is_err() {
        eprintln!("skipped: needs the privilege to change the root directory");
        return Ok(());
    }
    rustix::process::chdir("/").unwrap();
    for (number, draw) in draws.iter().enumerate() {
        machine.call(*draw);
        if number % 8 == 7 || number + 1 == draws.len() {
            // Descriptors of the last call exist from its end.
            let mut idle = Call::new(Nanos(machine.now), 1, CallKind::Sync);
            idle.duration = Some(Nanos(0));
            machine.state.next(&idle);
            machine.compare().map_err(|error| machine.failure(&error))?;
        }
    }
    let counts = machine.state.counts();
    let is_consistent = || {
        prop_assert_eq!((counts.contradictions, counts.appeared), (0, 0), "contradictions, appeared");
        Ok(())
    };
    is_consistent().map_err(|error| machine.failure(&error))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn names_positions_and_descriptors_are_those_of_the_kernel(draws in prop::collection::vec(any::<Draw>(), 1..120)) {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| scope.spawn(|| run(&draws, directory.path())).join().unwrap())?;
    }
}
