//! The files of `strace -ff` as one trace.

use std::fs;

use super::brief;
use crate::{Call, Metadata, OpenOptions, open, open_several};

const FIRST: &str = "1000000000.000001 execve(\"/bin/sh\", [], 0x7ff) = 0 <0.000001>
1000000000.000010 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.000005>
1000000000.000030 wait4(-1, NULL, 0, NULL) = 8 <0.000100>
1000000000.000150 exit_group(0) = ?
1000000000.000300 +++ exited with 0 +++
";
const SECOND: &str = "1000000000.000012 openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.000001>
1000000000.000040 close(3) = 0 <0.000001>
no call
1000000000.000050 exit_group(0) = ?
1000000000.000300 +++ exited with 0 +++
";

fn all(path: &std::path::Path) -> (Vec<Call>, Metadata) {
    let mut calls = open(path, &OpenOptions::default()).unwrap();
    let found = std::iter::from_fn(|| calls.next().unwrap()).collect();
    (found, calls.metadata().clone())
}

#[test]
fn the_files_of_all_threads_are_one_trace() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("t.strace");
    for (number, text) in [("7", FIRST), ("8", SECOND), ("9", ""), ("old", "other")] {
        fs::write(directory.path().join(format!("t.strace.{number}")), text).unwrap();
    }
    let (calls, about) = all(&name);
    assert_eq!(
        brief(&calls),
        [
            "0 1 7 execve 0",
            "9 5 7 clone 8",
            "11 1 8 openat 3",
            "29 100 7 wait4 8",
            "39 1 8 close 0",
            "49 - 8 exit_group ?",
            "149 - 7 exit_group ?",
        ]
    );
    assert!(calls.iter().all(|call| call.process == call.thread), "the clone names the process of the second file");
    assert_eq!(
        (about.counts.calls, about.counts.unfinished, about.counts.bad_lines),
        (7, 2, 1),
        "{:?}",
        about.warnings
    );
    assert!(about.complete && about.epoch_unix_ns == Some(1_000_000_000_000_001_000), "{about:?}");
    assert_eq!(about.span.last_ns, 149_000);
    assert!(about.warnings.iter().any(|warning| warning.contains("t.strace.8: 1 line")), "{:?}", about.warnings);
}

#[test]
fn the_span_of_several_files_begins_with_their_first_row() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("t.strace");
    let first = "1700000000.000000 brk(NULL) = 0x55 <0.000050>\n1700000000.010100 mkdir(\"/w\", 0755) = 0 <0.000050>\n";
    fs::write(directory.path().join("t.strace.1"), first).unwrap();
    fs::write(directory.path().join("t.strace.2"), "1700000000.020000 mkdir(\"/v\", 0755) = 0 <0.000050>\n").unwrap();
    let span = all(&name).1.span;
    assert_eq!((span.first_ns, span.last_ns), (10_100_000, 20_000_000));
}

#[test]
fn files_that_are_not_of_one_trace_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let [dated, timeless, of_day] =
        [("a.1", FIRST), ("a.2", "close(3) = 0\n"), ("a.3", "12:00:00.000001 close(3) = 0\n")]
            .map(|(name, text)| file(name, text));
    let named = file("trace", SECOND);
    for (paths, problem) in [
        ([dated.clone(), named], "whose names end with the number of their thread"),
        ([dated.clone(), timeless], "record with strace -ff -ttt -T"),
        ([dated, of_day], "of another kind"),
    ] {
        let error = open_several(&paths, &OpenOptions::default()).err().expect("it is refused").to_string();
        assert!(error.contains(problem), "{error}");
    }
}
