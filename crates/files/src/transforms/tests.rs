//! Transforms of small traces.

use iosonar_trace::{InMemory, Nanos};

use super::*;
use crate::{CallKind, Container, InitialProcess, Metadata, Name};

fn call(second: i64, kind: CallKind, path: Option<&str>) -> Call {
    Call { path: path.map(Name::from), process: 7, ..Call::new(Nanos(second * 1_000_000_000), 7, kind) }
}

fn edited(calls: &[Call], metadata: Metadata, pipeline: &str) -> (Vec<Call>, Metadata) {
    let pipeline = pipeline.parse::<Pipeline>().unwrap_or_else(|error| panic!("{error}"));
    let mut reader = pipeline.apply(Box::new(InMemory::new(calls.to_vec(), metadata))).unwrap();
    let mut result = Vec::new();
    while let Some(call) = reader.next().unwrap() {
        result.push(call);
    }
    (result, reader.metadata().clone())
}

fn trace() -> Vec<Call> {
    let mut calls = vec![
        call(0, CallKind::Openat, Some("/home/alice/notes.txt")),
        call(1, CallKind::Read, None),
        call(2, CallKind::Openat, Some("/home/alice/../alice/x.tar.gz")),
        call(3, CallKind::Write, None),
    ];
    calls[0].fd = Some(crate::AT_FDCWD);
    calls[0].result = Some(3);
    calls[1].fd = Some(3);
    calls[2].thread = 9;
    (calls[2].result, calls[2].errno) = (Some(-1), 2);
    calls[3].fd = Some(1);
    calls
}

fn kept(pipeline: &str) -> Vec<i64> {
    edited(&trace(), Metadata::new("calls", "test"), pipeline)
        .0
        .iter()
        .map(|call| call.begin.0 / 1_000_000_000)
        .collect()
}

#[test]
fn calls_are_selected_by_every_condition() {
    for (pipeline, expected) in [
        ("select", &[0, 1, 2, 3][..]),
        ("select call=read,write", &[1, 3]),
        ("select family=open", &[0, 2]),
        ("select call=write family=open", &[0, 2, 3]),
        ("select thread=9", &[2]),
        ("select process=8", &[]),
        ("select container=web", &[]),
        ("select result=failed", &[2]),
        ("select result=succeeded family=open", &[0]),
        ("select from=1 to=3", &[1, 2]),
        ("select from=1 to=3 base=zero", &[0, 1]),
        ("select family=open | select to=1", &[0]),
    ] {
        assert_eq!(kept(pipeline), expected, "{pipeline}");
    }
}

#[test]
fn errors_suggest_what_was_meant() {
    for (pipeline, expected) in [
        ("selct", "unknown transform of calls `selct`; did you mean select?"),
        ("select call=opnat", "call: `opnat` is unknown; did you mean openat?"),
        ("select family=reads", "family: `reads` is unknown; did you mean read?"),
        ("select thread=x", "thread: `x` is not a number"),
        ("select from=5 to=3", "to must be later than from"),
        ("select read", "`read` is not of the form name=value"),
        ("drop", "name the calls"),
        ("drop fsnc", "call: `fsnc` is unknown; did you mean fsync?"),
        ("gap", "nothing would change"),
        ("gap factor=2 compute=1", "set factor, or compute and waiting"),
        ("gap factor=-1", "factors are from 0"),
        ("anonymise key=''", "the key is empty"),
    ] {
        let error = pipeline.parse::<Pipeline>().unwrap_err().to_string();
        assert!(error.contains(expected), "{pipeline}: {error}");
    }
}

#[test]
fn anonymised_names_keep_equality_depth_and_structure() {
    let mut calls = trace();
    calls[1].fd_path = Some("/home/alice/notes.txt".into());
    calls[3].fd_path = Some("pipe:[81234]".into());
    calls[0].container = Some("alice-web".into());
    let container =
        Container { name: "alice-web".into(), id: "ab".into(), engine: "docker".into(), cgroup: "/a".into() };
    let metadata = Metadata {
        command: vec!["cat".into()],
        containers: vec![container],
        epoch_unix_ns: Some(1),
        processes: vec![InitialProcess {
            process: 7,
            threads: vec![7],
            cwd: "/home/alice".into(),
            umask: None,
            descriptors: Vec::new(),
        }],
        warnings: vec!["line 3: /home/alice".into()],
        ..Metadata::new("calls", "strace")
    };
    let (found, footer) = edited(&calls, metadata, "select to=1h | anonymise extension=keep key=secret");
    let path = |at: usize| found[at].path.as_ref().unwrap().to_string();
    let parts: Vec<String> = path(0).split('/').map(str::to_owned).collect();
    assert_eq!((parts.len(), parts[0].as_str()), (4, ""));
    assert!(parts[3].ends_with(".txt") && !path(0).contains("alice"), "{parts:?}");
    assert_eq!(found[1].fd_path.as_ref().unwrap().to_string(), path(0));
    let prefix = format!("/{}/{}", parts[1], parts[2]);
    assert!(path(2).starts_with(&format!("{prefix}/../{}/", parts[2])) && path(2).ends_with(".gz"), "{}", path(2));
    assert_eq!(found[3].fd_path, Some("pipe:[0]".into()));
    assert_eq!(footer.processes[0].cwd, prefix);
    let [container] = &footer.containers[..] else { panic!("{:?}", footer.containers) };
    assert_eq!(found[0].container.as_ref().map(ToString::to_string), Some(container.name.clone()));
    assert!(!container.name.contains("alice") && container.id.is_empty() && container.cgroup.is_empty());
    assert_eq!((footer.processes[0].threads[0], found[0].process), (found[0].thread, found[0].thread));
    assert!(found[0].thread != found[2].thread && found[0].thread != 7);
    assert!(footer.command.is_empty() && footer.warnings.is_empty() && footer.epoch_unix_ns.is_none());
    assert_eq!(footer.source.preamble, "Edited by iosonar: select | anonymise extension=keep key=…");
    // The same key gives the same names.
    let (again, _) = edited(&calls, Metadata::default(), "anonymise extension=keep key=secret");
    assert_eq!(again[0].path, found[0].path);
    let (other, _) = edited(&calls, Metadata::default(), "anonymise extension=keep");
    assert_ne!(other[0].path, found[0].path);
}

#[test]
fn anonymised_kernel_files_and_children_keep_their_meaning() {
    let mut calls = vec![
        call(0, CallKind::Openat, Some("/dev/null")),
        call(1, CallKind::Openat, Some("/proc/self/status")),
        call(2, CallKind::Clone, None),
        call(3, CallKind::Close, None),
        call(4, CallKind::Readlink, Some("a/./b/")),
    ];
    calls[2].result = Some(9);
    calls[3].thread = 9;
    let (found, _) = edited(&calls, Metadata::default(), "anonymise");
    let path = |at: usize| found[at].path.as_ref().unwrap().to_string();
    assert_eq!(path(0), "/dev/null");
    assert!(path(1).starts_with("/proc/self/n"), "{}", path(1));
    assert_eq!(found[2].result, Some(found[3].thread.into()));
    assert!(path(4).contains("/./") && path(4).ends_with('/'), "{}", path(4));
}

/// A call of thread 7 that begins and ends at these nanoseconds.
fn timed(begin: i64, end: i64, kind: CallKind) -> Call {
    Call { duration: Some(Nanos(end - begin)), ..Call::new(Nanos(begin), 7, kind) }
}

fn begins(calls: &[Call], pipeline: &str) -> Vec<i64> {
    edited(calls, Metadata::new("calls", "test"), pipeline).0.iter().map(|call| call.begin.0).collect()
}

#[test]
fn calls_are_dropped_by_kind() {
    let calls = [
        timed(0, 10, CallKind::Read),
        timed(20, 120, CallKind::Fsync),
        timed(130, 140, CallKind::Write),
        timed(150, 160, CallKind::Fdatasync),
        timed(170, 171, CallKind::Close),
    ];
    for (pipeline, expected) in [
        ("drop fsync", &[0, 130, 150, 170][..]),
        ("drop call=fsync", &[0, 130, 150, 170]),
        ("drop fsync,fdatasync", &[0, 130, 170]),
        ("drop fsync fdatasync", &[0, 130, 170]),
        ("drop family=sync", &[0, 130, 170]),
        ("drop family=sync thread=8", &[0, 20, 130, 150, 170]),
        ("drop fsync time=close", &[0, 30, 50, 70]),
        ("drop family=sync time=close", &[0, 30, 60]),
    ] {
        assert_eq!(begins(&calls, pipeline), expected, "{pipeline}");
    }
}

#[test]
fn gaps_change_by_the_kind_of_call_before_them() {
    let calls = [timed(0, 10, CallKind::Read), timed(30, 40, CallKind::Write), timed(60, 61, CallKind::Close)];
    for (pipeline, expected) in [
        ("gap max=1h", [0, 30, 60]),
        ("gap factor=0.5", [0, 20, 40]),
        ("gap family=read factor=2", [0, 50, 80]),
        ("gap call=write factor=0", [0, 30, 40]),
        ("gap max=5ns", [0, 15, 30]),
    ] {
        assert_eq!(begins(&calls, pipeline), expected, "{pipeline}");
    }
}

#[test]
fn a_gap_is_computing_and_waiting() {
    let mut calls = [timed(0, 10, CallKind::Read), timed(30, 40, CallKind::Write)];
    calls[1].waited = Some(Nanos(15));
    assert_eq!(begins(&calls, "gap compute=0.2"), [0, 26]);
    assert_eq!(begins(&calls, "gap waiting=0"), [0, 15]);
    calls[1].waited = None;
    let (found, metadata) = edited(&calls, Metadata::new("calls", "test"), "gap waiting=0");
    assert_eq!(found[1].begin.0, 30, "all of it counts as computing");
    assert!(metadata.warnings[0].contains("1 gap changed as computing"), "{:?}", metadata.warnings);
}

#[test]
fn a_call_never_begins_before_one_that_had_ended() {
    let mut calls = vec![timed(0, 10, CallKind::Read), timed(15, 28, CallKind::Write), timed(30, 40, CallKind::Write)];
    calls[1].thread = 9;
    assert_eq!(begins(&calls, "gap factor=0"), [0, 15, 28]);
}

proptest::proptest! {
    #[test]
    fn changed_gaps_keep_the_order_of_ends_and_begins(
        threads in proptest::collection::vec(
            proptest::collection::vec((0_i64..50, 0_i64..50, proptest::bool::ANY), 1..20), 1..5),
        factor in 0_u32..30,
    ) {
        let mut calls = Vec::new();
        for (thread, own) in threads.iter().enumerate() {
            let mut now = 0;
            for &(gap, duration, is_read) in own {
                let kind = if is_read { CallKind::Read } else { CallKind::Write };
                calls.push(Call { thread: thread as u32, ..timed(now + gap, now + gap + duration, kind) });
                now += gap + duration;
            }
        }
        calls.sort_by_key(|call| call.begin);
        // The place of each call, to find it again.
        for (place, call) in calls.iter_mut().enumerate() {
            call.flags = place as u64;
        }
        let pipeline = format!("gap family=read factor={}", f64::from(factor) / 10.0);
        let (found, _) = if factor == 10 {
            (calls.clone(), Metadata::default())
        } else {
            edited(&calls, Metadata::new("calls", "test"), &pipeline)
        };
        proptest::prop_assert_eq!(found.len(), calls.len());
        proptest::prop_assert!(found.is_sorted_by_key(|call| call.begin));
        let mut by_place = found.clone();
        by_place.sort_by_key(|call| call.flags);
        for (before, now) in calls.iter().zip(&by_place) {
            for (other_before, other_now) in calls.iter().zip(&by_place) {
                if before.end() <= Some(other_before.begin) && before.flags < other_before.flags {
                    proptest::prop_assert!(now.end() <= Some(other_now.begin), "{:?} {:?}", now, other_now);
                }
            }
        }
    }
}
