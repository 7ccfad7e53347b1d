//! Calls that change what later calls see: followed, or named as not replayed.

use super::super::Options;
use super::script::Script;
use crate::model::ioctl::{FICLONE, FIDEDUPERANGE};
use crate::state::State;
use crate::tree::{Kind, Plan};
use crate::{Access, Call, Name, Resource, Skip, Unreplayable};

fn open(path: &str, flags: i32, fd: i64) -> impl FnOnce(&mut Call) {
    let path = Name::from(path);
    move |call| (call.path, call.flags, call.result) = (Some(path), flags as u64, Some(fd))
}

fn set_flags(fd: i32, flags: i32) -> impl FnOnce(&mut Call) {
    move |call| (call.fd, call.flags, call.fd2) = (Some(fd), libc::F_SETFL as u64, Some(flags))
}

fn write(fd: i32, result: i64) -> impl FnOnce(&mut Call) {
    move |call| (call.fd, call.length, call.result) = (Some(fd), Some(result as u64), Some(result))
}

fn unreplayable(state: &State) -> Vec<String> {
    state.counts().unreplayable.iter().map(|(name, count)| format!("{name} {count}")).collect()
}

#[test]
fn all_descriptors_append_after_their_flags_changed() {
    let mut script = Script::new();
    script
        .call("open", open("/f", libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC, 3))
        .call("dup", |call| (call.fd, call.result) = (Some(3), Some(4)))
        .call("write", write(3, 10))
        .call("lseek", |call| (call.fd, call.offset, call.result) = (Some(3), Some(0), Some(0)))
        .call("fcntl", set_flags(4, libc::O_APPEND | libc::O_SYNC))
        .call("write", write(3, 5))
        .call("fcntl", set_flags(3, 0))
        .call("write", write(4, 1));
    let (_, resolved) = script.run(Options::default());
    let positions: Vec<_> = [2, 5, 7].iter().map(|&call: &usize| resolved[call].position).collect();
    assert_eq!(positions, [Some(0), Some(10), Some(15)]);
    assert_eq!((resolved[4].skip, resolved[4].description), (None, resolved[0].makes));
    let flags = Resource::Flags(resolved[0].makes.unwrap());
    let touches = |call: usize| resolved[call].touches.iter().find(|touch| touch.resource == flags).unwrap().access;
    assert_eq!([touches(2), touches(4), touches(5)], [Access::Use, Access::Modify, Access::Use]);
}

#[test]
fn a_clone_uses_its_source_and_changes_its_target() {
    let mut script = Script::new();
    script
        .call("open", open("/from", libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC, 3))
        .call("write", write(3, 10))
        .call("open", open("/to", libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC, 4))
        .call("ioctl", |call| (call.fd, call.fd2, call.flags) = (Some(4), Some(3), FICLONE.into()))
        .call("lseek", |call| {
            (call.fd, call.offset, call.flags, call.result) = (Some(4), Some(0), libc::SEEK_END as u64, Some(10));
        })
        .call("ioctl", |call| (call.fd, call.fd2, call.flags) = (Some(4), Some(3), FIDEDUPERANGE.into()));
    let (state, resolved) = script.run(Options::default());
    let both = (resolved[2].makes, resolved[0].makes);
    assert_eq!((resolved[3].skip, (resolved[3].description, resolved[3].description2)), (None, both));
    assert_eq!((resolved[5].skip, (resolved[5].description, resolved[5].description2)), (None, both));
    assert!(
        resolved[3]
            .touches
            .iter()
            .any(|touch| matches!(touch.resource, Resource::Size(_)) && touch.access == Access::Modify)
    );
    assert_eq!(unreplayable(&state), [""; 0]);
}

#[test]
fn changes_without_a_replay_are_named_and_counted() {
    let mut script = Script::new();
    script
        .call("open", open("/f", libc::O_RDWR | libc::O_CREAT, 3))
        .call("ioctl", |call| (call.fd, call.flags) = (Some(3), 0x4008_6602))
        .call("ioctl", |call| (call.fd, call.flags) = (Some(3), 0x8008_6601))
        .call("ioctl", |call| {
            (call.fd, call.flags, call.result, call.errno) = (Some(3), 0x4008_6602, Some(-1), libc::EPERM)
        })
        .call("setxattr", |call| call.path = Some("/f".into()))
        .call("fsetxattr", |call| (call.fd, call.path2) = (Some(3), Some("system.posix_acl_access".into())))
        .call("fsetxattr", |call| (call.fd, call.path2) = (Some(3), Some("user.a".into())))
        .call("file_setattr", |call| (call.fd, call.path) = (Some(-100), Some("/f".into())))
        .call("mount", |call| (call.path, call.path2) = (Some("/dev/sdb".into()), Some("/mnt".into())))
        .call("setns", |call| (call.fd, call.flags) = (Some(9), libc::CLONE_NEWNET as u64))
        .call("io_submit", |call| call.result = Some(2))
        .call("io_uring_enter", |call| (call.fd, call.result) = (Some(9), Some(1)))
        .call("mmap", |call| {
            (call.fd, call.flags, call.mode) = (Some(3), libc::MAP_SHARED as u64, Some(libc::PROT_WRITE as u32));
        })
        .call("mmap", |call| {
            (call.fd, call.flags, call.mode) = (Some(3), libc::MAP_PRIVATE as u64, Some(libc::PROT_WRITE as u32));
        })
        .call("pwrite64", write(77, 5))
        .call("rename", |call| {
            (call.path, call.path2) = (Some("/a".into()), Some("/b".into()));
        })
        .call("renameat2", |call| {
            (call.path, call.path2, call.flags) = (Some("/b".into()), Some("/a".into()), 4);
        });
    let (state, resolved) = script.run(Options::default());
    let expected = [
        "file_setattr 1",
        "fsetxattr 1",
        "io_submit 1",
        "io_uring_enter (its requests are not in the trace) 1",
        "ioctl FS_IOC_SETFLAGS 1",
        "mmap (shared, writable) 1",
        "mount 1",
        "pwrite64 1",
        "renameat2 1",
        "setxattr 1",
    ];
    assert_eq!(unreplayable(&state), expected);
    assert_eq!(
        (resolved[1].skip, resolved[1].unreplayable),
        (Some(Skip::ChangesFiles), Some(Unreplayable::Ioctl(0x4008_6602)))
    );
    assert_eq!((resolved[2].skip, resolved[6].skip, resolved[15].skip), (Some(Skip::NotReplayable), None, None));
    assert!(
        state
            .warnings()
            .iter()
            .any(|warning| warning.starts_with("10 calls change files, and are not replayed: file_setattr 1"))
    );
}

#[test]
fn a_transfer_beside_a_pipe_reads_or_writes_the_file() {
    let mut script = Script::new();
    script
        .call("open", open("/f", libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC, 3))
        .call("pipe", |call| (call.fd, call.fd2) = (Some(5), Some(6)))
        .call("splice", |call| (call.fd, call.fd2, call.length, call.result) = (Some(5), Some(3), Some(100), Some(70)))
        .call("sendfile", |call| {
            (call.fd, call.fd2, call.offset, call.length, call.result) = (Some(6), Some(3), Some(8), Some(9), Some(9));
        })
        .call("splice", |call| (call.fd, call.fd2, call.result) = (Some(5), Some(6), Some(70)));
    let (_, resolved) = script.run(Options::default());
    let file = resolved[0].makes;
    assert_eq!((resolved[2].skip, resolved[2].description, resolved[2].description2), (None, None, file));
    assert_eq!((resolved[3].skip, resolved[3].description, resolved[3].description2), (None, None, file));
    assert_eq!(resolved[4].skip, Some(Skip::NotAFile));
}

#[test]
fn a_path_that_the_directory_roots_starts_there() {
    let mut script = Script::new();
    script
        .call("mkdir", |call| call.path = Some("/d".into()))
        .call("open", open("/d", libc::O_DIRECTORY, 3))
        .call("openat2", |call| {
            (call.fd, call.path, call.flags) = (Some(3), Some("/../f".into()), (libc::O_CREAT | libc::O_RDWR) as u64);
            (call.offset, call.result) = (Some(0x10), Some(4));
        })
        .call("openat2", |call| {
            (call.fd, call.path, call.offset) = (Some(3), Some("../f".into()), Some(8));
            (call.result, call.errno) = (Some(-1), libc::EXDEV);
        });
    let (_, resolved) = script.run(Options::default());
    assert_eq!(resolved[2].path, Some("/d/f".into()));
    assert_eq!(resolved[3].skip, Some(Skip::NotReplayable));
}

#[test]
fn a_request_can_let_execve_close_a_descriptor() {
    let mut script = Script::new();
    script
        .call("open", open("/f", libc::O_RDWR | libc::O_CREAT, 3))
        .call("ioctl", |call| (call.fd, call.flags) = (Some(3), 0x5451))
        .call("execve", |call| call.path = Some("/bin/true".into()));
    let (_, resolved) = script.run(Options::default());
    assert_eq!(resolved[1].skip, Some(Skip::Bookkeeping));
    assert_eq!(resolved[2].ends, [resolved[0].makes.unwrap()]);
}

/// What is to be made under these paths.
fn made(script: &Script, paths: &[&str]) -> Vec<Option<Kind>> {
    let (state, _) = script.run(Options { with_needs: true, ..Options::default() });
    let plan = Plan::new(state.needs().unwrap(), None, &Default::default(), &Default::default());
    let found =
        |path: &&str| plan.items.iter().find(|item| *item.path == *path.as_bytes()).map(|item| item.kind_to_make());
    paths.iter().map(found).collect()
}

#[test]
fn what_stat_finds_to_be_a_directory_is_made_as_one() {
    let mut script = Script::new();
    let stat =
        |path: &'static str, mode: u32| move |call: &mut Call| (call.path, call.mode) = (Some(path.into()), Some(mode));
    let missing = |path: &'static str| {
        move |call: &mut Call| {
            (call.path, call.result, call.errno) = (Some(path.into()), Some(-1), libc::ENOENT);
        }
    };
    script
        .call("stat", stat("/d", 0o40755))
        .call("statx", |call| (call.fd, call.path, call.mode) = (Some(-100), Some("/x".into()), Some(0o40755)))
        .call("stat", stat("/f", 0o100_644))
        .call("open", open("/o", libc::O_RDONLY, 3))
        .call("fstat", |call| (call.fd, call.mode) = (Some(3), Some(0o40755)))
        .call("access", |call| call.path = Some("/below".into()))
        .call("stat", missing("/below/a"))
        .call("stat", missing("/before/a"))
        .call("access", |call| call.path = Some("/before".into()))
        // A link to a directory: what it leads to can be used.
        .call("lstat", stat("/l", 0o120_777))
        .call("stat", stat("/l", 0o40755));
    let [directory, file] = [Some(Kind::Directory), Some(Kind::File)];
    assert_eq!(
        made(&script, &["/d", "/x", "/f", "/o", "/below", "/before", "/l", "/below/a"]),
        [directory, directory, file, directory, directory, directory, Some(Kind::Link), file]
    );
}
