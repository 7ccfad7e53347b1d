//! Descriptors, processes and paths, followed through small traces.

use super::super::{First, Ignore, Options, PathMap, State};
use super::script::Script;
use crate::tree::{Entry, EntryId, Kind, Tree};
use crate::{Access, Call, InitialDescriptor, InitialProcess, Metadata, Name, Resolved, Resource, Skip};

fn open(path: &str, flags: i32, fd: i64) -> impl FnOnce(&mut Call) {
    let path = Name::from(path);
    move |call| (call.path, call.flags, call.result) = (Some(path), flags as u64, Some(fd))
}

fn fd(fd: i32) -> impl FnOnce(&mut Call) {
    move |call| call.fd = Some(fd)
}

fn io(fd: i32, length: u64, result: i64) -> impl FnOnce(&mut Call) {
    move |call| (call.fd, call.length, call.result) = (Some(fd), Some(length), Some(result))
}

fn dup(old: i32, new: i32) -> impl FnOnce(&mut Call) {
    move |call| (call.fd, call.fd2, call.result) = (Some(old), Some(new), Some(new.into()))
}

fn clone(child: i64, flags: i32) -> impl FnOnce(&mut Call) {
    move |call| (call.result, call.flags) = (Some(child), flags as u32 as u64)
}

fn failing(path: &str, errno: i32) -> impl FnOnce(&mut Call) {
    let path = Name::from(path);
    move |call| (call.path, call.result, call.errno) = (Some(path), Some(-1), errno)
}

fn skips(resolved: &[Resolved]) -> Vec<Option<Skip>> {
    resolved.iter().map(|resolved| resolved.skip).collect()
}

#[test]
fn only_the_close_of_the_last_descriptor_is_issued() {
    let mut script = Script::new();
    script
        .call("open", open("/f", libc::O_RDWR | libc::O_CREAT, 3))
        .call("dup", |call| (call.fd, call.result) = (Some(3), Some(4)))
        .call("close", fd(3))
        .call("write", io(4, 10, 10))
        .call("close", fd(4));
    let (state, resolved) = script.run(Options::default());
    let bookkeeping = Some(Skip::Bookkeeping);
    assert_eq!(skips(&resolved), [None, bookkeeping, bookkeeping, None, None]);
    let id = resolved[0].makes.unwrap();
    assert_eq!(resolved[3].description, Some(id));
    assert_eq!(resolved[4].ends, [id]);
    assert!(
        resolved[4]
            .touches
            .iter()
            .any(|touch| { touch.resource == Resource::Description(id) && touch.access == Access::Modify })
    );
    assert_eq!(state.descriptions.len(), 0);
}

#[test]
fn dup2_ends_what_its_target_was_and_to_itself_nothing() {
    let mut script = Script::new();
    script
        .call("open", open("/f", libc::O_RDONLY, 3))
        .call("open", open("/g", libc::O_RDONLY, 4))
        .call("dup2", dup(3, 3))
        .call("dup2", dup(3, 4))
        .call("read", io(4, 5, 5));
    let (_, resolved) = script.run(Options::default());
    assert_eq!(resolved[3].ends, [resolved[1].makes.unwrap()]);
    assert!(resolved[2].ends.is_empty());
    assert_eq!(resolved[4].description, resolved[0].makes);
}

#[test]
fn a_fork_copies_the_table_and_shares_the_position() {
    let mut script = Script::new();
    script
        .call("open", open("/f", libc::O_RDONLY, 21))
        .call("fork", clone(2, 0))
        .call_of(2, "dup2", dup(21, 3))
        .call("close", fd(21))
        .call_of(2, "read", io(3, 10, 10))
        .call_of(2, "read", io(21, 10, 10))
        .call_of(2, "close", fd(3))
        .call_of(2, "exit_group", |call| call.result = None);
    let (state, resolved) = script.run(Options::default());
    let id = resolved[0].makes;
    assert_eq!((resolved[4].description, resolved[4].position), (id, Some(0)));
    assert_eq!((resolved[5].description, resolved[5].position), (id, Some(10)));
    assert_eq!(resolved[3].skip, Some(Skip::Bookkeeping));
    assert_eq!(resolved[7].ends, [id.unwrap()]);
    assert_eq!(state.processes.len(), (1, 1, 1));
}

#[test]
fn threads_share_the_table_until_they_unshare_it() {
    let mut script = Script::new();
    script
        .call("clone", clone(2, libc::CLONE_THREAD | libc::CLONE_FILES | libc::CLONE_FS | libc::CLONE_VM))
        .call_of(2, "open", open("/f", libc::O_RDONLY, 5))
        .call("read", io(5, 1, 1))
        .call_of(2, "unshare", |call| call.flags = libc::CLONE_FILES as u64)
        .call_of(2, "close", fd(5))
        .call("read", io(5, 1, 1))
        .call("exit_group", |call| call.result = None);
    let (state, resolved) = script.run(Options::default());
    assert_eq!(resolved[2].description, resolved[1].makes);
    assert_eq!(resolved[4].skip, Some(Skip::Bookkeeping));
    assert_eq!(resolved[5].skip, None);
    assert_eq!(resolved[6].ends.len(), 1);
    assert_eq!((state.processes.len(), state.descriptions.len()), ((0, 0, 0), 0));
}

#[test]
fn execve_closes_what_is_marked() {
    let mut script = Script::new();
    script
        .call("open", open("/a", libc::O_RDONLY | libc::O_CLOEXEC, 3))
        .call("open", open("/b", libc::O_RDONLY, 4))
        .call("open", open("/c", libc::O_RDONLY, 5))
        .call("fcntl", |call| (call.fd, call.flags, call.fd2) = (Some(5), libc::F_SETFD as u64, Some(libc::FD_CLOEXEC)))
        .call("fcntl", |call| (call.fd, call.flags, call.result) = (Some(4), libc::F_DUPFD_CLOEXEC as u64, Some(10)))
        .call("execve", |call| call.path = Some("/bin/x".into()))
        .call("read", io(4, 1, 1));
    let (_, resolved) = script.run(Options::default());
    assert_eq!(resolved[5].ends, [resolved[0].makes.unwrap(), resolved[2].makes.unwrap()]);
    assert_eq!(resolved[6].description, resolved[1].makes);
}

#[test]
fn close_range_closes_marks_and_unshares() {
    let range = |first: i32, flags: u64| {
        move |call: &mut Call| (call.fd, call.fd2, call.flags) = (Some(first), Some(i32::MAX), flags)
    };
    let mut script = Script::new();
    script
        .call("open", open("/a", libc::O_RDONLY, 3))
        .call("open", open("/b", libc::O_RDONLY, 4))
        .call("close_range", range(4, 4))
        .call("execve", |call| call.path = Some("/bin/x".into()))
        .call("clone", clone(2, libc::CLONE_FILES))
        .call_of(2, "close_range", range(0, 2))
        .call("read", io(3, 1, 1))
        .call("close_range", range(3, 0));
    let (_, resolved) = script.run(Options::default());
    assert_eq!(resolved[3].ends, [resolved[1].makes.unwrap()]);
    assert!(resolved[5].ends.is_empty());
    assert_eq!(resolved[6].skip, None);
    assert_eq!(resolved[7].ends, [resolved[0].makes.unwrap()]);
}

#[test]
fn a_descriptor_exists_from_its_call_end_or_first_use() {
    let mut script = Script::new();
    script.call("clone", clone(2, libc::CLONE_THREAD | libc::CLONE_FILES | libc::CLONE_FS));
    script.call("open", open("/f", libc::O_RDONLY, 3)).call_of(2, "read", io(3, 1, 1));
    script.calls[1].duration = Some(iosonar_trace::Nanos(1_000));
    let (state, resolved) = script.run(Options::default());
    assert_eq!(resolved[2].description, resolved[1].makes);
    assert_eq!(state.counts().unknown_descriptors, 0);
}

#[test]
fn a_descriptor_that_is_closed_during_a_dup_may_be_its_result() {
    let mut script = Script::new();
    script.call("clone", clone(2, libc::CLONE_THREAD | libc::CLONE_FILES | libc::CLONE_FS));
    script
        .call("open", open("/f", libc::O_RDONLY, 3))
        .call_of(2, "open", open("/g", libc::O_RDONLY, 4))
        .call("dup", dup(3, 4))
        .call_of(2, "close", fd(4))
        .call("read", io(4, 1, 1));
    script.calls[3].duration = Some(iosonar_trace::Nanos(15));
    script.calls[5].begin = iosonar_trace::Nanos(60);
    let (_, resolved) = script.run(Options::default());
    assert_eq!(resolved[4].ends, [resolved[2].makes.unwrap()]);
    assert!(resolved[3].ends.is_empty());
    assert_eq!(resolved[5].description, resolved[1].makes);
}

#[test]
fn pipes_and_kernel_files_are_tracked_but_not_replayed() {
    let mut script = Script::new();
    script
        .call("pipe2", |call| (call.fd, call.fd2) = (Some(3), Some(4)))
        .call("write", io(4, 1, 1))
        .call("open", open("/proc/self/maps", libc::O_RDONLY, 5))
        .call("read", io(5, 1, 1))
        .call("open", open("/dev/shm/x", libc::O_RDONLY, 6))
        .call("read", io(6, 1, 1))
        .call("close", fd(4));
    let (_, resolved) = script.run(Options::default());
    let (pipe, kernel) = (Some(Skip::NotAFile), Some(Skip::KernelFile));
    assert_eq!(skips(&resolved), [pipe, pipe, kernel, kernel, None, None, pipe]);
}

#[test]
fn files_that_were_open_before_are_inferred_or_counted() {
    let mut script = Script::new();
    script
        .call("read", |call| {
            io(7, 10, 10)(call);
            call.fd_path = Some("/data/x".into());
        })
        .call("read", io(8, 10, 10))
        .call("write", io(1, 10, 10));
    let mut state = State::new(&Metadata::default(), Options::default());
    let first = state.next(&script.calls[0]);
    let inferred = state.take_inferred();
    assert_eq!(first.description, Some(inferred[0].id));
    assert_eq!((inferred[0].path.clone(), inferred[0].position), (Name::from("/data/x"), 0));
    assert_eq!(state.next(&script.calls[1]).skip, Some(Skip::NotReplayable));
    assert_eq!(state.next(&script.calls[2]).skip, Some(Skip::NotAFile));
    assert_eq!((state.counts().inferred_opens, state.counts().unknown_descriptors), (1, 1));
}

#[test]
fn recorded_processes_have_their_descriptors_and_directories() {
    let descriptor = InitialDescriptor { fd: 4, path: "/d/x".into(), flags: libc::O_RDWR as u64, position: 100 };
    let process = InitialProcess {
        process: 1,
        threads: vec![1],
        cwd: "/d".into(),
        umask: Some(0o27),
        descriptors: vec![descriptor],
    };
    let metadata = Metadata { processes: vec![process], ..Metadata::default() };
    let mut script = Script::new();
    script.call("read", io(4, 10, 10)).call("stat", |call| call.path = Some("y".into()));
    let mut state = State::new(&metadata, Options::default());
    let resolved = script.resolve(&mut state);
    assert_eq!((resolved[0].skip, resolved[0].position), (None, Some(100)));
    assert_eq!(resolved[1].path, Some("/d/y".into()));
    assert_eq!(resolved[1].umask, Some(0o27));
    assert_eq!(state.counts().assumed_cwds, 0);
    assert_eq!(state.open_descriptions()[0].position, 110);
}

#[test]
fn paths_are_mapped_ignored_and_normalised() {
    let mut script = Script::new();
    script
        .call("symlink", |call| (call.path, call.path2) = (Some("/home/u".into()), Some("/link".into())))
        .call("open", open("/link/../x", libc::O_RDONLY, 3))
        .call("open", open("/home/./u//x", libc::O_RDONLY, 4))
        .call("open", open("/skipped/x", libc::O_RDONLY, 5))
        .call("read", io(5, 1, 1));
    let options = Options {
        map: PathMap::parse(b"/home/u /data").unwrap(),
        ignore: Ignore::parse(b"/skipped"),
        ..Options::default()
    };
    let (_, resolved) = script.run(options);
    assert_eq!(resolved[1].path, Some("/home/x".into()));
    assert_eq!(resolved[2].path, Some("/data/x".into()));
    assert_eq!(skips(&resolved[3..]), [Some(Skip::Ignored), Some(Skip::Ignored)]);
}

#[test]
fn needs_are_what_the_trace_showed_first() {
    let mut script = Script::new();
    script
        .call("open", open("/in", libc::O_RDONLY, 3))
        .call("read", io(3, 4096, 4096))
        .call("read", io(3, 4096, 100))
        .call("open", open("/new", libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 4))
        .call("write", io(4, 50, 50))
        .call("unlink", |call| call.path = Some("/new".into()))
        .call("stat", failing("/dir/none", libc::ENOENT))
        .call("open", open("/db", libc::O_RDWR | libc::O_CREAT, 5))
        .call("pread64", |call| {
            io(5, 16, 16)(call);
            call.offset = Some(1000);
        })
        .call("open", open("/log", libc::O_WRONLY | libc::O_CREAT, 6))
        .call("rename", |call| (call.path, call.path2) = (Some("/old".into()), Some("/moved".into())))
        .call("open", open("/moved/file", libc::O_RDONLY, 7));
    let (state, _) = script.run(Options { with_needs: true, ..Options::default() });
    let needs = state.needs().unwrap();
    let of = |path: &str| {
        let found = needs.iter().find(|(found, _)| found == path.as_bytes()).map(|(_, need)| need);
        found.map(|need| (need.first, need.kind, need.bytes, need.is_exact))
    };
    let file = Some(Kind::File);
    assert_eq!(of("/in"), Some((First::Exists, file, 4196, true)));
    assert_eq!(of("/new").unwrap().0, First::Absent);
    assert_eq!(of("/dir/none").unwrap().0, First::Absent);
    assert_eq!(of("/db"), Some((First::Exists, file, 1016, false)));
    assert_eq!(of("/log").unwrap().0, First::Either);
    assert_eq!(of("/old").unwrap(), (First::Exists, Some(Kind::Directory), 0, false));
    assert_eq!(of("/old/file").unwrap().0, First::Exists);
    assert_eq!(of("/moved/file"), None);
}

#[test]
fn a_snapshot_tells_links_sizes_and_absence() {
    let mut tree = Tree::default();
    let top = tree.directory(b"/d");
    let mut add = |component: &[u8], kind, bytes, target: Option<&[u8]>, group| {
        let mut entry = Entry::new(top, component, kind);
        (entry.bytes, entry.target, entry.group) = (bytes, target.map(Into::into), group);
        entry.is_captured = true;
        tree.add(entry)
    };
    add(b"f", Kind::File, 100, None, Some(1));
    add(b"g", Kind::File, 100, None, Some(1));
    add(b"l", Kind::Link, 0, Some(b"f"), None);
    let mut captured = tree.entry(top).clone();
    captured.is_captured = true;
    tree.add(captured);
    assert_eq!(tree.path(EntryId(2)), b"/d/f");
    let mut script = Script::new();
    script
        .call("open", open("/d/l", libc::O_WRONLY | libc::O_APPEND, 3))
        .call("write", io(3, 10, 10))
        .call("fstat", fd(3))
        .call("stat", |call| call.path = Some("/d/g".into()))
        .call("open", open("/d/new", libc::O_WRONLY | libc::O_CREAT, 4));
    let (_, resolved) = script.run(Options { tree: Some(tree.into()), ..Options::default() });
    assert_eq!(resolved[1].position, Some(100));
    let objects = |resolved: &Resolved| -> Vec<Resource> {
        let all = resolved.touches.iter().map(|touch| touch.resource);
        all.filter(|resource| matches!(resource, Resource::Object(_))).collect()
    };
    assert_eq!(objects(&resolved[2]), objects(&resolved[3]));
    assert!(
        resolved[4]
            .touches
            .iter()
            .any(|touch| { matches!(touch.resource, Resource::Entries(_)) && touch.access == Access::Modify })
    );
}

#[test]
fn memory_does_not_grow_with_the_length_of_the_trace() {
    let mut state = State::new(&Metadata::default(), Options::default());
    let mut sizes = Vec::new();
    for round in 0..3_000 {
        let mut script = Script::new();
        let path = format!("/tmp/{round}");
        script
            .call("open", open(&path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL, 3))
            .call("stat", failing(&format!("/tmp/none/{round}"), libc::ENOENT))
            .call("unlink", |call| call.path = Some(path.as_str().into()))
            .call("fork", clone(2, 0))
            .call_of(2, "exit_group", |call| call.result = None)
            .call("close", fd(3));
        script.resolve(&mut state);
        sizes.push((state.names.len(), state.descriptions.len(), state.processes.len()));
    }
    assert_eq!(sizes[10], sizes[2_999]);
}

#[test]
fn hostile_paths_are_refused_and_counted() {
    let mut script = Script::new();
    let long = format!("/{}", "a/".repeat(5_000));
    script
        .call("mkdir", |call| call.path = Some(long.as_str().into()))
        .call("symlink", |call| (call.path, call.path2) = (Some("/l".into()), Some("/l".into())))
        .call("stat", failing("/l", libc::ELOOP))
        .call("rename", |call| (call.path, call.path2) = (Some("/a".into()), Some("/a/b/c".into())))
        .call("open", open("/../../x", libc::O_RDONLY, 3));
    for _ in 0..3_000 {
        script.call("mkdir", |call| call.path = Some("deep".into()));
        script.call("chdir", |call| call.path = Some("deep".into()));
    }
    let (state, resolved) = script.run(Options::default());
    assert_eq!(resolved[0].skip, Some(Skip::ChangesFiles));
    assert_eq!(resolved[3].skip, Some(Skip::ChangesFiles));
    assert_eq!(resolved[4].path, Some("/x".into()));
    assert!(state.counts().long_paths > 1);
    assert_eq!(state.counts().contradictions, 1);
}

fn bind(path: &str, errno: i32) -> impl FnOnce(&mut Call) {
    let path = Name::from(path);
    move |call| {
        (call.fd, call.path, call.errno) = (Some(3), Some(path), errno);
        call.result = Some(if errno == 0 { 0 } else { -1 });
    }
}

#[test]
fn the_name_of_a_unix_socket_is_that_of_a_special_file() {
    let mut script = Script::new();
    script
        .call("socket", |call| call.result = Some(3))
        .call("chdir", |call| call.path = Some("/run".into()))
        .call("bind", bind("s", 0))
        .call("chmod", |call| call.path = Some("/run/s".into()))
        .call("bind", bind("/run/s", libc::EADDRINUSE))
        .call("bind", bind("/run/t", libc::EINVAL))
        .call("bind", |call| call.fd = Some(3))
        .call("unlink", |call| call.path = Some("/run/s".into()))
        .call("stat", failing("/run/s", libc::ENOENT));
    let (_, resolved) = script.run(Options::default());
    let (special, other) = (Some(Skip::SpecialFile), Some(Skip::NotAFile));
    assert_eq!(skips(&resolved)[2..], [special, special, special, other, other, special, None]);
    assert_eq!(resolved[2].path, Some("/run/s".into()));
    let (_, resolved) = script.run(Options { special_files: true, ..Options::default() });
    assert_eq!(skips(&resolved)[2..], [None, None, None, other, other, None, None]);
    assert!(resolved[3].touches.iter().any(|touch| touch.resource == resolved[2].touches[0].resource));
}

#[test]
fn absolute_targets_of_symbolic_links_are_mapped() {
    let map = PathMap::parse(b"/home/u /moved").unwrap();
    let target = |path: &str| {
        let mut script = Script::new();
        script.call("symlink", |call| (call.path, call.path2) = (Some(path.into()), Some("/home/u/link".into())));
        script.call("stat", |call| call.path = Some("/home/u/link/x".into()));
        let (_, resolved) = script.run(Options { map: map.clone(), ..Options::default() });
        assert_eq!(resolved[0].path2, Some("/moved/link".into()));
        resolved[0].target.as_ref().unwrap().to_string()
    };
    assert_eq!(target("/home/u/d"), "/moved/d");
    assert_eq!(target("/etc/d"), "/etc/d");
    assert_eq!(target("../u/d"), "../u/d");
}

#[test]
fn a_call_that_failed_for_too_many_descriptors_is_not_replayed() {
    let mut script = Script::new();
    script.call("open", |call| {
        open("/f", libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC, -1)(call);
        call.errno = libc::EMFILE;
    });
    let (_, resolved) = script.run(Options::default());
    assert_eq!(skips(&resolved), [Some(Skip::NotReplayable)]);
}
