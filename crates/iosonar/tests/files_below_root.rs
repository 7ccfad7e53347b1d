//! `iosonar files replay` stays below its root, whatever the calls name.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use iosonar_files::{CallKind, CallOutcome};

use crate::files_replaying::{Bench, Trace, outcomes};

/// A directory beside the root that must stay as it is.
fn with_outside(bench: &Bench) -> PathBuf {
    let outside = bench.0.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "untouched").unwrap();
    outside
}

#[test]
fn nothing_leads_out_of_the_root() {
    let bench = Bench::new();
    let outside = with_outside(&bench);
    let shown = outside.to_str().unwrap();
    symlink(&outside, bench.root().join("absolute")).unwrap();
    symlink("../outside", bench.root().join("relative")).unwrap();
    symlink(outside.join("secret"), bench.root().join("file")).unwrap();
    let mut trace = Trace::new();
    for (number, way) in ["/absolute", "/relative", "/../outside", "/x/../../outside", shown].into_iter().enumerate() {
        let fd = 10 + number as i64;
        trace.open(&format!("{way}/new"), libc::O_CREAT | libc::O_WRONLY, fd);
        trace.open(&format!("{way}/secret"), libc::O_TRUNC | libc::O_WRONLY, fd + 100);
        trace.path(CallKind::Unlink, &format!("{way}/secret"), 0).path(CallKind::Chmod, &format!("{way}/secret"), 0);
        trace.path(CallKind::Truncate, &format!("{way}/secret"), 0).path(CallKind::Mkdir, &format!("{way}/d"), 0);
        trace.two(CallKind::Rename, &format!("{way}/secret"), "/stolen", 0);
    }
    trace.path(CallKind::Truncate, "/file", 0).path(CallKind::Chmod, "/file", 0).two(
        CallKind::Symlink,
        shown,
        "/own",
        0,
    );
    trace.open("/own/secret", libc::O_RDWR | libc::O_TRUNC, 90);
    bench.replay(&trace, 4, &["--timing", "asap", "--unprepared"]);
    let names: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["secret"]);
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "untouched");
    assert!(!bench.root().join("stolen").exists());
}

#[test]
fn special_files_are_neither_made_nor_waited_for() {
    let bench = Bench::new();
    let fifo = std::ffi::CString::new(bench.root().join("planted").into_os_string().into_encoded_bytes()).unwrap();
    assert!(Command::new("mkfifo").arg(fifo.to_str().unwrap()).status().unwrap().success());
    let mut trace = Trace::new();
    trace.path(CallKind::Mknod, "/fifo", 0);
    trace.calls[0].mode = Some(libc::S_IFIFO | 0o644);
    trace.open("/planted", libc::O_RDONLY, 3);
    let rows = bench.replay(&trace, 4, &[]);
    assert_eq!(outcomes(&rows), [CallOutcome::SpecialFile, CallOutcome::Failed]);
    assert!(!bench.root().join("fifo").exists());
    bench.output(&trace, 0, &["--special-files"]);
    assert!(fs::metadata(bench.root().join("fifo")).unwrap().file_type().is_fifo());
}

#[test]
fn names_of_unix_sockets_are_made_if_asked_for() {
    use CallKind as K;
    let mut trace = Trace::new();
    for errno in [0, libc::EADDRINUSE] {
        trace.path(K::Bind, "/s", -i64::from(errno));
        trace.calls.last_mut().unwrap().fd = Some(3);
    }
    trace.path(K::Chmod, "/s", 0).two(K::Rename, "/s", "/t", 0);
    let bench = Bench::new();
    assert_eq!(outcomes(&bench.replay(&trace, 0, &[])), [CallOutcome::SpecialFile; 4]);
    assert_eq!(outcomes(&bench.replay(&trace, 0, &["--special-files"])), [CallOutcome::Same; 4]);
    assert!(fs::metadata(bench.root().join("t")).unwrap().file_type().is_socket());
}

#[test]
fn links_with_absolute_targets_lead_to_where_the_map_puts_them() {
    use CallKind as K;
    let bench = Bench::new();
    let map = bench.0.path().join("map");
    fs::write(&map, "/home/u /moved\n").unwrap();
    for name in ["home", "moved"] {
        fs::create_dir(bench.root().join(name)).unwrap();
    }
    let mut trace = Trace::new();
    trace.path(K::Mkdir, "/home/u/d", 0).two(K::Symlink, "/home/u/d", "/home/u/l", 0).path(K::Mkdir, "/home/u/l/x", 0);
    bench.replay(&trace, 0, &["--map", map.to_str().unwrap()]);
    assert_eq!(fs::read_link(bench.root().join("moved/l")).unwrap(), Path::new("/moved/d"));
    assert!(bench.root().join("moved/d/x").is_dir());
}
