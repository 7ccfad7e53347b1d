//! Text rebuilt from the published definition of the format; handles, addresses and names are made up.

use std::io::Cursor;
use std::path::Path;

use iosonar_trace::Reader as _;
use iosonar_trace::input::Input;

use super::*;
use crate::{Call, CallKind, Metadata};

/// A line: a request or a reply with what follows its first eight fields.
fn line(at: &str, direction: &str, id: u32, operation: &str, rest: &str) -> String {
    let (from, to) = if direction.starts_with('C') { ("30.0801", "31.0320") } else { ("31.0320", "30.0801") };
    let tail = if direction.starts_with('C') { "con = 82 len = 110" } else { "status=0 pl = 70 con = 82 len = 110" };
    format!("{at} {from} {to} U {direction} {id:08x} 03 {operation} {rest} {tail}\n")
}

fn calls_of(text: &str) -> (Vec<Call>, Metadata) {
    let input = Input::from_reader(Path::new("x.nfsdump"), Box::new(Cursor::new(text.to_owned())), None).unwrap();
    let mut reader = Reader::open(input);
    let mut calls = Vec::new();
    while let Some(call) = reader.next().unwrap() {
        calls.push(call);
    }
    (calls, reader.metadata().clone())
}

fn names(calls: &[Call]) -> Vec<&str> {
    calls.iter().map(|call| call.kind.name()).collect()
}

const ROOT: &str = "01000600ff";
const FILE: &str = "01000600aa";

fn attributes(kind: u32, size: u32) -> String {
    format!(
        "ftype {kind} mode 1a4 nlink 1 uid 0 gid 0 size {size:x} used 2000 rdev 0 rdev2 0 fsid 1 fileid 7 \
             atime 1004562602.000000 mtime 1004562602.000000 ctime 1004562602.000000"
    )
}

fn trace() -> String {
    [
        line("1004562602.000000", "C3", 1, "lookup", &format!("fh {ROOT} name \"mail\\20box\"")),
        line("1004562602.000150", "R3", 1, "lookup", &format!("OK fh {FILE} {}", attributes(1, 8192))),
        line("1004562602.001000", "C3", 2, "read", &format!("fh {FILE} off 1000 count 1000")),
        line("1004562602.001100", "C3", 3, "write", &format!("fh {FILE} off 2000 count 200 stable F")),
        line("1004562602.003000", "R3", 3, "write", "OK count 200 stable F"),
        line("1004562602.004000", "R3", 2, "read", &format!("OK {} count 800 eof 1", attributes(1, 8192))),
        line("1004562602.005000", "C3", 4, "remove", &format!("fh {ROOT} name \"mail\\20box\"")),
        line("1004562602.006000", "R3", 4, "remove", "d"),
        line("1004562602.007000", "C3", 5, "null", ""),
        line("1004562602.008000", "C3", 6, "getattr", &format!("fh {FILE}")),
    ]
    .concat()
}

#[test]
fn times_before_any_calendar_are_bad_lines() {
    let text = [
        line("1004562602.000000", "C3", 1, "write", &format!("fh {FILE} off 0 count 200 stable F")),
        line("-9223372036854.000000", "R3", 1, "write", "OK count 200 stable F"),
        line("9223372036854.000000", "C3", 2, "write", &format!("fh {FILE} off 0 count 200 stable F")),
        line("10045626029223.000000", "C3", 3, "write", &format!("fh {FILE} off 0 count 200 stable F")),
    ];
    for first in 0..text.len() {
        let (calls, metadata) = calls_of(&[&text[first..], &text[..first]].concat().concat());
        assert!(!calls.is_empty() && metadata.counts.bad_lines > 0, "{first}");
    }
}

#[test]
fn a_write_of_unknown_length_did_not_return() {
    let text = [
        line("1.000000", "C3", 1, "write", &format!("fh {FILE} off 2000 stable F")),
        line("1.003000", "R3", 1, "write", "OK stable F"),
    ];
    let (calls, metadata) = calls_of(&text.concat());
    let write = calls.last().unwrap();
    assert_eq!((write.kind, write.result, write.duration), (CallKind::Pwritev2, None, None));
    assert_eq!(metadata.counts.unfinished, 1);
}

#[test]
fn requests_become_the_calls_that_do_the_same() {
    let (calls, metadata) = calls_of(&trace());
    assert_eq!(names(&calls), ["lstat", "openat", "pread64", "pwritev2", "unlink", "lstat"]);
    let [lookup, open, read, write, remove, getattr] = &calls[..] else { panic!("{calls:?}") };
    let path = lookup.path.as_ref().unwrap().to_string();
    assert!(path.starts_with("/fh-") && path.ends_with("/mail box"), "{path}");
    assert_eq!((lookup.begin.0, lookup.duration.unwrap().0, lookup.mode), (0, 150_000, Some(0o100_644)));
    assert_eq!((open.path.as_ref().unwrap().to_string(), open.result), (path.clone(), Some(3)));
    assert_eq!((read.fd, read.offset, read.length, read.result), (Some(3), Some(4096), Some(4096), Some(2048)));
    assert_eq!((read.begin.0, read.duration.unwrap().0), (1_000_000, 3_000_000));
    assert_eq!((write.fd, write.offset, write.result, write.flags), (Some(3), Some(8192), Some(512), 4));
    assert_ne!(read.thread, write.thread, "requests in progress at the same time are threads of the client");
    assert_eq!(read.process, write.process);
    assert_eq!((remove.path.as_ref().unwrap().to_string(), remove.errno), (path.clone(), libc::EACCES));
    assert_eq!((getattr.path.as_ref().unwrap().to_string(), getattr.duration, getattr.result), (path, None, None));
    assert_eq!(metadata.counts.other_calls["null"], 1);
    assert_eq!((metadata.counts.bad_lines, metadata.counts.unfinished), (0, 1));
    assert_eq!(metadata.epoch_unix_ns, Some(1_004_562_602_000_000_000));
}

#[test]
fn version_2_has_other_names_for_the_same_fields() {
    let text = [
        line("9.000000", "C2", 1, "create  ", &format!("fh {ROOT} fn \"new\" mode 1a4 size 0")),
        line("9.000100", "R2", 1, "create  ", &format!("OK fh {FILE} ftype 1 mode 1a4 size 0")),
        line("9.001000", "C2", 2, "write   ", &format!("fh {FILE} begoff 0 offset 400 tcount 200")),
        line("9.001100", "R2", 2, "write   ", "OK ftype 1 mode 1a4 size 600"),
        line("9.002000", "C2", 3, "rename", &format!("fh {ROOT} fn \"new\" fh2 {ROOT} fn2 \"old\"")),
        line("9.002100", "R2", 3, "rename", "OK nfsstat 0"),
        line("9.003000", "C2", 4, "getattr", &format!("fh {FILE}")),
        line("9.003100", "R2", 4, "getattr", "OK ftype 1 mode 1a4 size 600"),
    ]
    .concat();
    let (calls, metadata) = calls_of(&text);
    assert_eq!(names(&calls), ["openat", "pwritev2", "rename", "lstat"], "{metadata:?}");
    let [create, write, rename, getattr] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(create.flags, (libc::O_CREAT | libc::O_RDWR | libc::O_TRUNC) as u64);
    assert_eq!((create.mode, create.result), (Some(0o644), write.fd.map(i64::from)));
    assert_eq!((write.offset, write.length, write.result), (Some(1024), Some(512), Some(512)));
    let to = rename.path2.as_ref().unwrap();
    assert!(to.to_string().ends_with("/old"));
    assert_eq!(getattr.path.as_ref(), Some(to), "the handle has its new name");
}

#[test]
fn a_listing_from_the_start_rewinds_the_directory() {
    let request = |at: &str, id, cookie: &str| {
        let asked = line(at, "C3", id, "readdirp", &format!("fh {ROOT} cookie {cookie} count 200 maxcnt 1000"));
        asked + &line(at, "R3", id, "readdirp", "OK eof 1 fileid-0 7 name-0 \"a\" cookie-0 1")
    };
    let text = request("1.000000", 1, "0") + &request("1.001000", 2, "1ff") + &request("1.002000", 3, "0");
    let (calls, _) = calls_of(&text);
    assert_eq!(names(&calls), ["openat", "getdents64", "getdents64", "lseek", "getdents64"]);
    assert_eq!(calls[3].offset, Some(0));
}

#[test]
fn bad_lines_retransmissions_and_lost_requests_are_counted() {
    let request = line("1.000000", "C3", 1, "getattr", &format!("fh {FILE}"));
    let text = [
        request.clone(),
        request,
        line("1.000100", "R3", 9, "getattr", "OK ftype 1"),
        line("1.000200", "R3", 1, "getattr", "46"),
        "1.000300 30.0801 31.0320 U C3 0000000a 01 getattr SHORT PACKET con = 1 len = 2\n".into(),
        "1.0003 30.0801 31.0320 U C3\n".into(),
        line("0.500000", "C3", 2, "getattr", &format!("fh {FILE}")),
        line("1.000400", "C3", 3, "getattr", &format!("fh {FILE}")).trim_end().into(),
    ]
    .concat();
    let (calls, metadata) = calls_of(&text);
    assert_eq!(names(&calls), ["lstat", "lstat"]);
    assert_eq!((calls[0].errno, calls[1].begin.0), (libc::ESTALE, 0));
    let others = &metadata.counts.other_calls;
    assert_eq!((others["retransmission"], others["reply without request"]), (1, 1));
    assert_eq!((metadata.counts.bad_lines, metadata.complete), (3, false));
    let said = metadata.warnings.join("\n");
    assert!(said.contains("line 5: the packet is cut short") && said.contains("1 request has a time before"), "{said}");
}

#[test]
fn many_files_are_not_open_at_the_same_time() {
    let read = |file: usize| {
        let at = format!("1.{file:06}");
        let handle = format!("{file:016x}");
        line(&at, "C3", file as u32, "read", &format!("fh {handle} off 0 count 10"))
            + &line(&at, "R3", file as u32, "read", "OK count 10 eof 1")
    };
    let text: String = (1..=600).map(read).collect();
    let (calls, _) = calls_of(&text);
    let number = |kind: CallKind| calls.iter().filter(|call| call.kind == kind).count();
    assert_eq!((number(CallKind::Pread64), number(CallKind::Openat), number(CallKind::Close)), (600, 600, 88));
}

#[test]
fn text_of_nfsdump_is_recognised_by_its_content() {
    assert!(recognise(trace().as_bytes()));
    for other in ["", "25227 1795464429.376993 close(3) = 0 <0.000063>\n", "0 ; 8 ; 1.5\n", "1.000000 a b U C3\n"] {
        assert!(!recognise(other.as_bytes()), "{other}");
    }
}

proptest::proptest! {
    #[test]
    fn damaged_text_of_nfsdump_is_no_panic(
        changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), 0_u8..128), 1..20),
    ) {
        let mut text = trace().repeat(2).into_bytes();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let (calls, metadata) = calls_of(&String::from_utf8(text).unwrap());
        proptest::prop_assert!(calls.is_sorted_by_key(|call| call.begin));
        proptest::prop_assert!(calls.iter().all(|call| iosonar_trace::Row::problem(call).is_none()));
        proptest::prop_assert_eq!(metadata.counts.calls, calls.len() as u64);
    }
}
