//! A known answer: 29 calls of one thread, from the tests of a published replayer. Each takes one unit of time; `conservative`
//! is the sequence, `fs` follows the last modification of the object or of the directory that holds the name.

use iosonar_files::order::{Order, Policy};
use iosonar_files::state::{self, State};
use iosonar_files::{AT_FDCWD, Call, CallKind, InitialProcess, Metadata, Name};
use iosonar_trace::Nanos;

/// Each call with its predecessors in `fs`. Numbers are from 1.
const FS: [(&str, &str, &[u64]); 29] = [
    ("mkdir", "/dir_to_mk", &[]),
    ("readdir", "/dir_to_mk", &[1]),
    ("mkdir", "/dir_to_readdirplus", &[1]),
    ("readdir", "/dir_to_readdirplus", &[3]),
    ("rmdir", "/dir_to_readdirplus", &[3]),
    ("create", "/dir_to_mk/path_to_creat", &[1]),
    ("access", "/dir_to_mk/path_to_creat", &[6]),
    ("write", "/dir_to_mk/path_to_creat", &[6]),
    ("read", "/dir_to_mk/path_to_creat", &[8]),
    ("link", "/dir_to_mk/path_to_creat /dir_to_mk/link", &[6, 8]),
    ("readlink", "/dir_to_mk/link", &[10]),
    ("rename", "/dir_to_mk /dir_to_mk_renamed", &[5, 10]),
    ("symlink", "dir_to_mk_renamed /dir_to_mk_renamed_sl", &[12]),
    ("mknod", "/node", &[13]),
    ("create", "/path_to_getattr", &[14]),
    ("getattr", "/path_to_getattr", &[15]),
    ("getattr", "/dir_to_mk_renamed_sl", &[13]),
    ("getattr", "/thereisnosuchpath", &[]),
    ("statfs", "/", &[15]),
    ("mkdir", "/lookup_parent", &[15]),
    ("mkdir", "/lookup_parent/dir_to_lookup", &[20]),
    ("getattr", "/lookup_parent/dir_to_lookup", &[21]),
    ("create", "/lookup_parent/dir_to_lookup/to_remove", &[21]),
    ("unlink", "/lookup_parent/dir_to_lookup/to_remove", &[23]),
    ("create", "/path_to_commit", &[20]),
    ("write", "/path_to_commit", &[25]),
    ("fsync", "/path_to_commit", &[26]),
    ("chmod", "/path_to_commit", &[27]),
    ("chmod", "/path_to_commit", &[28]),
];

/// The system call. Calls on descriptors get one each that was open before, and stays open.
fn call(index: usize) -> Call {
    let (name, paths, _) = FS[index];
    let kind = match name {
        "readdir" => CallKind::Getdents64,
        "create" => CallKind::Openat,
        "write" => CallKind::Pwrite64,
        "read" => CallKind::Pread64,
        "getattr" => CallKind::Lstat,
        other => CallKind::from_name(other).unwrap(),
    };
    let mut call = Call::new(Nanos(10 * (index as i64 + 1)), 7, kind);
    call.duration = Some(Nanos(1));
    call.process = 7;
    let (path, path2) = paths.split_once(' ').map_or((paths, None), |(path, path2)| (path, Some(path2)));
    call.path2 = path2.map(Name::from);
    if matches!(kind, CallKind::Getdents64 | CallKind::Pwrite64 | CallKind::Pread64 | CallKind::Fsync) {
        (call.fd, call.fd_path) = (Some(100 + index as i32), Some(Name::from(path)));
    } else {
        call.path = Some(Name::from(path));
    }
    match kind {
        CallKind::Openat => {
            call.fd = Some(AT_FDCWD);
            (call.flags, call.mode) = ((libc::O_CREAT | libc::O_EXCL) as u64, Some(0o644));
            call.result = Some(200 + index as i64);
        }
        CallKind::Pwrite64 | CallKind::Pread64 => {
            (call.offset, call.length, call.result) = (Some(0), Some(4096), Some(4096));
        }
        CallKind::Mknod => call.mode = Some(libc::S_IFREG | 0o644),
        // A link to a file is no symbolic link.
        CallKind::Readlink => (call.result, call.errno) = (Some(-1), libc::EINVAL),
        CallKind::Lstat if path == "/thereisnosuchpath" => (call.result, call.errno) = (Some(-1), libc::ENOENT),
        _ => {}
    }
    call
}

fn predecessors(policy: Policy) -> Vec<Vec<u64>> {
    let process = InitialProcess { process: 7, threads: vec![7], cwd: "/".to_owned(), ..InitialProcess::default() };
    let metadata = Metadata { processes: vec![process], ..Metadata::default() };
    let mut state = State::new(&metadata, state::Options::default());
    let mut order = Order::new(policy);
    (0..FS.len())
        .map(|index| {
            let call = call(index);
            let resolved = state.next(&call);
            assert_eq!(resolved.skip, None, "{}", index + 1);
            order.predecessors(index as u64, &call, &resolved).iter().map(|number| number + 1).collect()
        })
        .collect()
}

#[test]
fn fs_follows_the_last_modifications_edge_for_edge() {
    for (index, found) in predecessors(Policy::Fs).iter().enumerate() {
        assert_eq!(found, FS[index].2, "call {}: {} {}", index + 1, FS[index].0, FS[index].1);
    }
}

#[test]
fn conservative_is_the_sequence_edge_for_edge() {
    for (index, found) in predecessors(Policy::Conservative).iter().enumerate() {
        let before: Vec<u64> = if index == 0 { vec![] } else { vec![index as u64] };
        assert_eq!(*found, before, "call {}", index + 1);
    }
}
