//! What must exist before a trace: what the errors of calls prove.

use super::super::Options;
use super::script::Script;
use crate::tree::{Plan, PlannedPath, Requirement};
use crate::{Call, CallKind, Name};

fn failing(name: &str, path: &str, flags: i32, errno: i32) -> Call {
    let mut call = Call::new(iosonar_trace::Nanos(0), 1, CallKind::from_name(name).unwrap());
    (call.path, call.flags) = (Some(path.into()), flags as u64);
    (call.result, call.errno) = if errno == 0 { (Some(0), 0) } else { (Some(-1), errno) };
    call
}

fn two(name: &str, path: &str, path2: &str, errno: i32) -> Call {
    Call { path2: Some(path2.into()), ..failing(name, path, 0, errno) }
}

fn read_link(path: &str, target: &str) -> Call {
    Call { result: Some(target.len() as i64), ..two("readlink", path, target, 0) }
}

fn text(item: &PlannedPath) -> String {
    let kind = item.kind.map_or("any", |kind| kind.name());
    let target = item.target.as_deref().map(|target| format!(" {}", Name::from(target))).unwrap_or_default();
    let absent = if item.must == Requirement::NotExist { "no " } else { "" };
    format!("{absent}{} {kind}{target}", Name::from(&*item.path))
}

fn plan(calls: &[Call]) -> (Plan, Vec<String>) {
    let mut script = Script::new();
    for call in calls {
        let call = call.clone();
        script.call(call.kind.name(), move |made| *made = Call { begin: made.begin, duration: made.duration, ..call });
    }
    let (state, _) = script.run(Options { with_needs: true, cwd: Some("/".into()), ..Options::default() });
    let plan = Plan::new(state.needs().unwrap(), None, &Default::default(), &Default::default());
    let items = plan.items.iter().map(text).collect();
    (plan, items)
}

#[test]
fn an_error_shows_what_its_path_was() {
    use libc::*;
    let cases: &[(Call, &[&str])] = &[
        (failing("truncate", "/d", 0, EISDIR), &["/d directory"]),
        (failing("open", "/d", O_WRONLY, EISDIR), &["/d directory"]),
        (failing("open", "/d", O_RDWR | O_CREAT, EISDIR), &["/d directory"]),
        (failing("open", "/d/", O_RDWR | O_CREAT, EISDIR), &[]),
        (failing("open", "/f", O_RDWR | O_CREAT | O_EXCL, EEXIST), &["/f any"]),
        (failing("unlink", "/d", 0, EISDIR), &["/d directory"]),
        (failing("rmdir", "/d", 0, ENOTEMPTY), &["/d directory", "/d/.unknown-entry file"]),
        (failing("rmdir", "/d/..", 0, ENOTEMPTY), &["/d directory"]),
        (failing("rmdir", "/f", 0, ENOTDIR), &["/f any"]),
        (failing("chdir", "/f", 0, ENOTDIR), &["/f any"]),
        (failing("open", "/f", O_DIRECTORY, ENOTDIR), &["/f any"]),
        (failing("stat", "/f/x", 0, ENOTDIR), &["/f any"]),
        (failing("mkdir", "/a/f/x", 0, ENOTDIR), &["/a directory", "/a/f any"]),
        (failing("unlink", "/f/", 0, ENOTDIR), &["/f any"]),
        (failing("open", "/l", O_NOFOLLOW, ELOOP), &["/l symlink unknown-target"]),
        (failing("stat", "/l", 0, ELOOP), &["/l symlink l"]),
        (failing("readlink", "/f", 0, EINVAL), &["/f any"]),
        (failing("open", "/p", O_WRONLY | O_NONBLOCK, ENXIO), &["/p fifo"]),
        (failing("open", "/p", O_RDWR, ENXIO), &["/p socket"]),
        (failing("open", "/f", O_WRONLY, ETXTBSY), &["/f file"]),
        (failing("access", "/f", X_OK, EACCES), &["/f any"]),
        (failing("chmod", "/f", 0, EROFS), &["/f any"]),
        (failing("mkdir", "/d/x", 0, EROFS), &["/d directory"]),
        (failing("open", "/f", O_RDONLY, EACCES), &[]),
        (failing("stat", "/f", 0, ENOENT), &["no /f any"]),
        (two("rename", "/d", "/e", ENOTEMPTY), &["/d directory", "/e directory", "/e/.unknown-entry file"]),
        (two("rename", "/f", "/d", EISDIR), &["/d directory", "/f any"]),
        (two("rename", "/d", "/f", ENOTDIR), &["/d directory", "/f any"]),
        (two("rename", "/a/f", "/b/f", EXDEV), &["/a directory", "/b directory"]),
        (two("rename", "/d", "/d/x", EINVAL), &["/d directory"]),
        (two("link", "/d", "/x", EPERM), &["/d directory"]),
        (two("link", "/f", "/g", EEXIST), &["/f any", "/g any"]),
        (two("link", "/f", "/a/g", EXDEV), &["/a directory", "/f any"]),
    ];
    for (call, expected) in cases {
        let (_, items) = plan(std::slice::from_ref(call));
        assert_eq!(items, *expected, "{call:?}");
    }
}

#[test]
fn a_link_is_made_with_the_target_that_was_read() {
    use libc::*;
    let cases: &[(&[Call], &[&str])] = &[
        (&[read_link("/v/l", "f")], &["/v directory", "/v/l symlink f"]),
        (&[failing("stat", "/l", 0, 0), read_link("/l", "f")], &["/f any", "/l symlink f"]),
        (&[read_link("/l", "f"), failing("stat", "/l", 0, 0)], &["/f any", "/l symlink f"]),
        // The error went through the link.
        (&[failing("stat", "/l", 0, ENOENT), read_link("/l", "f")], &["no /f any", "/l symlink f"]),
        (&[failing("stat", "/l", 0, ENOENT), failing("unlink", "/l", 0, 0)], &["/l symlink unknown-target"]),
        (&[failing("stat", "/l", 0, ENOENT), failing("mkdir", "/l", 0, EEXIST)], &["/l symlink unknown-target"]),
        // But not if the call that failed follows none.
        (&[failing("lstat", "/l", 0, ENOENT), failing("unlink", "/l", 0, 0)], &["no /l any"]),
        (&[failing("stat", "/l/x", 0, 0), read_link("/l", "d")], &["/d directory", "/d/x any", "/l symlink d"]),
        (
            &[read_link("/l", "m"), read_link("/m", "f"), failing("stat", "/l", 0, 0)],
            &["/f any", "/l symlink m", "/m symlink f"],
        ),
    ];
    for (calls, expected) in cases {
        let (plan, items) = plan(calls);
        assert_eq!(items, *expected, "{calls:?}");
        assert!(plan.unknown_links.is_empty(), "{calls:?}");
    }
}

#[test]
fn a_slash_behind_a_link_shows_no_directory() {
    let create = failing("open", "/l", libc::O_RDWR | libc::O_CREAT, libc::EISDIR);
    let (_, items) = plan(&[read_link("/l", "new/"), create]);
    assert_eq!(items, ["/l symlink new/"]);
}

#[test]
fn a_link_with_an_unknown_target_is_named() {
    let read = Call { result: Some(3), ..failing("readlink", "/l", 0, 0) };
    let (made, items) = plan(std::slice::from_ref(&read));
    assert_eq!((items, &*made.unknown_links), (vec!["/l symlink un?".to_owned()], &[b"/l"[..].into()][..]));
    // What calls found through it can be used.
    let (made, items) = plan(&[failing("chdir", "/l", 0, 0), read]);
    let expected = ["/.unknown-target-0 directory", "/l symlink /.unknown-target-0"].map(String::from).to_vec();
    assert_eq!((items, made.unknown_links.len()), (expected, 1));
}

#[test]
fn changes_that_failed_for_reasons_elsewhere_are_left_out() {
    use libc::*;
    for (call, is_issued) in [
        (two("rename", "/a", "/b", EXDEV), false),
        (failing("unlink", "/a", 0, EROFS), false),
        (failing("open", "/a", O_WRONLY | O_TRUNC, ETXTBSY), false),
        (failing("mkdir", "/a", 0, EACCES), false),
        (failing("rmdir", "/a", 0, EBUSY), false),
        (two("rename", "/a/.", "/b", EBUSY), true),
        (two("link", "/a", "/b", EPERM), true),
        (failing("stat", "/a", 0, EACCES), true),
        (failing("open", "/a", O_WRONLY, EACCES), true),
    ] {
        let mut script = Script::new();
        let text = format!("{call:?}");
        script.call(call.kind.name(), move |made| *made = call);
        let (_, resolved) = script.run(Options::default());
        assert_eq!(resolved[0].skip.is_none(), is_issued, "{text}");
    }
}

#[test]
fn dots_and_slashes_at_the_end_of_failed_paths_stay() {
    use libc::*;
    for (call, path) in [
        (failing("mkdir", "/a/.", 0, ENOENT), "/a/."),
        (failing("open", "/f/..", O_RDWR | O_CREAT, ENOTDIR), "/f/.."),
        (failing("unlink", "/f/", 0, ENOTDIR), "/f/"),
        (failing("rmdir", "/d/.", 0, EINVAL), "/d/."),
        (failing("stat", "/d/../x", 0, 0), "/x"),
    ] {
        let mut script = Script::new();
        script.call(call.kind.name(), |made| *made = call);
        let (_, resolved) = script.run(Options::default());
        assert_eq!(resolved[0].path, Some(path.into()));
    }
}
