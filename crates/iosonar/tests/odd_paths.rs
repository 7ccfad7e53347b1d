//! Paths that are not UTF-8: every command that names them in JSON or on the terminal works.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use crate::replaying::{Bench, MIB, adjacent_requests, text};

#[test]
fn paths_without_utf8_work_in_every_command() {
    let bench = Bench::new();
    let odd = |ending: &str| {
        let name = [b"\xff\xfe n", ending.as_bytes()].concat();
        bench.path("x").with_file_name(OsString::from_vec(name))
    };
    let (load, target, result) = (odd(".load"), bench.path("target.img"), odd(".replay.parquet"));
    fs::write(&load, text(&adjacent_requests(20, 8))).expect("a load");
    fs::File::create(&target).and_then(|file| file.set_len(MIB)).expect("a target");
    let word = OsStr::new;
    let commands: [&[&OsStr]; 10] = [
        &[word("replay"), load.as_ref(), word("-t"), target.as_ref(), word("-o"), result.as_ref(), word("--json")],
        &[word("info"), load.as_ref(), word("--json")],
        &[word("info"), result.as_ref(), word("--json")],
        &[word("limit"), result.as_ref(), word("--json")],
        &[word("check"), result.as_ref(), load.as_ref(), word("--json")],
        &[word("convert"), result.as_ref(), word("/dev/null"), word("--to"), word("classic")],
        &[word("edit"), load.as_ref(), word("/dev/null"), word("scale time=2"), word("--to"), word("classic")],
        &[word("device"), word("inspect"), target.as_ref(), word("--json")],
        &[word("device"), word("slurp"), target.as_ref(), word("--json")],
        &[word("device"), word("wipe"), target.as_ref()],
    ];
    for arguments in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_iosonar")).args(arguments).output().expect("it runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!message.contains("panicked"), "{arguments:?}: {message}");
        let code = output.status.code();
        // The times of a load differ from those of its replay: `check` may report that.
        let expected: &[i32] = if arguments[0] == "check" { &[0, 3] } else { &[0] };
        assert!(code.is_some_and(|code| expected.contains(&code)), "{arguments:?}: {code:?} {message}");
    }
}
