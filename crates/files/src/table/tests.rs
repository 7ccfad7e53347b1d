//! Reading of written tables, and of wrong ones.

use std::path::Path;

use iosonar_trace::formats::parquet::{BadRows, Buffers, CellType, Cells, Column, Table, column, nullable, required};
use iosonar_trace::{Row, Writer as _};
use proptest::prelude::*;

use super::*;
use crate::{CallKind, CallOutcome, DelayReason, Name, OpenOptions};

fn calls_of(path: &Path) -> Result<(Vec<Call>, Metadata)> {
    let mut reader = crate::open(path, &OpenOptions::default())?;
    let mut calls = Vec::new();
    while let Some(call) = reader.next()? {
        calls.push(call);
    }
    Ok((calls, reader.metadata().clone()))
}

fn any_name() -> impl Strategy<Value = Option<Name>> {
    prop::option::of(prop::collection::vec(1_u8..=255, 0..20).prop_map(|bytes| Name::from(&bytes[..])))
}

prop_compose! {
    fn any_call()(
        (begin, duration) in (0..i64::MAX / 4, prop::option::of(0..i64::MAX / 4)),
        (thread, process) in (0..u32::MAX >> 1, 0..u32::MAX >> 1), kind in 0..CallKind::ALL.len(), is_uring in any::<bool>(),
        (fd, fd2) in any::<(Option<i32>, Option<i32>)>(),
        (fd_path, path, path2, container) in (any_name(), any_name(), any_name(), any_name()),
        (offset, offset2, length) in (any::<Option<i64>>(), any::<Option<i64>>(), prop::option::of(0..u64::MAX >> 1)),
        waited in prop::option::of(0..i64::MAX / 4),
        flags in any::<u64>(),
        mode in any::<Option<u32>>(), result in any::<Option<i64>>(), errno in 0..4096,
    ) -> Call {
        Call {
            begin: Nanos(begin), duration: duration.map(Nanos), thread, process, kind: CallKind::ALL[kind], is_uring, fd, fd2,
            fd_path, path, path2, offset, offset2, length, flags, mode, result, errno,
            waited: waited.map(Nanos), container,
        }
    }
}

prop_compose! {
    fn any_result()(
        call in any_call(), instance in 0..u32::MAX >> 1, number in 0..u64::MAX >> 1,
        times in prop::array::uniform4(prop::option::of(-i64::MAX / 4..i64::MAX / 4)), position in prop::option::of(0..u64::MAX >> 1),
        (delay_reason, outcome) in (0..DelayReason::ALL.len(), 0..CallOutcome::ALL.len()),
        (expected_result, expected_errno) in (any::<Option<i64>>(), 0..4096),
    ) -> CallResult {
        let [issued, completed, predecessors_end, gap] = times.map(|time| time.map(Nanos));
        let completed = completed.map(|completed| completed.max(issued.unwrap_or(completed)));
        CallResult {
            call: number, instance, thread: call.thread, kind: call.kind, path: call.path, position, length: call.length,
            scheduled: call.begin, issued, completed, predecessors_end, gap, delay_reason: DelayReason::ALL[delay_reason],
            result: call.result, errno: call.errno, expected_result, expected_errno, expected_duration: call.duration,
            outcome: CallOutcome::ALL[outcome],
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn calls_are_read_as_written(mut written in prop::collection::vec(any_call(), 0..50)) {
        written.sort_by_key(|call| call.begin);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.calls.parquet");
        let mut metadata = Metadata::new("calls", "strace");
        metadata.counts.bad_lines = 3;
        metadata.counts.other_calls.insert("brk".into(), 7);
        metadata.command = vec!["tar".into(), "-c".into()];
        let mut writer = create(&path, &metadata).unwrap();
        for call in &written {
            writer.write(call).unwrap();
        }
        writer.finish(&metadata).unwrap();
        let (calls, footer) = calls_of(&path).unwrap();
        prop_assert_eq!(&calls, &written);
        prop_assert_eq!(footer.counts.calls, written.len() as u64);
        prop_assert_eq!(footer.counts.unfinished, written.iter().filter(|call| call.duration.is_none()).count() as u64);
        prop_assert_eq!(footer.span.last_ns, written.last().map_or(0, |call| call.begin.0));
        prop_assert_eq!((&footer.counts.other_calls, &footer.command), (&metadata.counts.other_calls, &metadata.command));
        prop_assert_eq!(crate::recognise(&path), Some(crate::FileKind::Calls));
    }

    #[test]
    fn results_are_read_as_written(written in prop::collection::vec(any_result(), 0..50)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.calls-run.parquet");
        let metadata = Metadata {
            run: Some(Box::new(crate::CallsRun {
                options: iosonar_trace::run_info::OpenMap::of(&serde_json::json!({"order": "fs"})).into(),
                ..Default::default()
            })),
            ..Metadata::new("calls_run", "x")
        };
        let mut writer = create_run(&path).unwrap();
        for result in &written {
            writer.write(result).unwrap();
        }
        writer.finish(&metadata).unwrap();
        let mut reader = open_run(&path).unwrap();
        let mut results = Vec::new();
        while let Some(result) = reader.next().unwrap() {
            results.push(result);
        }
        prop_assert_eq!(results, written);
        prop_assert_eq!(&reader.metadata().run, &metadata.run);
        prop_assert_eq!(crate::recognise(&path), Some(crate::FileKind::CallsRun));
    }
}

/// Seconds of times and durations: those that lines have, and those at the ends of all ranges.
fn any_seconds() -> impl Strategy<Value = u64> {
    let last = i64::MAX as u64 / 1_000_000_000;
    prop_oneof![1_000_000_000_u64..1_000_000_100, last / 4 - 2..last / 4 + 2, last - 2..last + 2, any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn strace_text_of_any_times_becomes_a_readable_table(
        files in prop::collection::vec(prop::collection::vec((any_seconds(), any_seconds()), 1..6), 1..3),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let line = |(at, took): &(u64, u64)| format!("{at}.854775807 close(3) = 0 <{took}.854775807>\n");
        let mut paths = Vec::new();
        for (number, lines) in files.iter().enumerate() {
            let path = directory.path().join(format!("x.strace.{}", 4711 + number));
            std::fs::write(&path, lines.iter().map(line).collect::<String>()).unwrap();
            paths.push(path);
        }
        let Ok(mut reader) = crate::open_several(&paths, &OpenOptions::default()) else { return Ok(()) };
        let table = directory.path().join("x.calls.parquet");
        let mut writer = create(&table, reader.metadata()).unwrap();
        let mut calls = Vec::new();
        while let Some(call) = reader.next().unwrap() {
            writer.write(&call).unwrap();
            calls.push(call);
        }
        writer.finish(reader.metadata()).unwrap();
        prop_assert_eq!(calls_of(&table).unwrap().0, calls);
    }
}

#[test]
fn a_call_that_a_reader_would_refuse_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.calls.parquet");
    let mut writer = create(&path, &Metadata::new("calls", "test")).unwrap();
    let error = writer.write(&Call::new(Nanos::MAX, 7, CallKind::Read)).unwrap_err().to_string();
    assert!(error.contains("more than 73 years from zero"), "{error}");
}

/// A row with values that no recorder writes.
#[derive(Clone, Copy)]
struct Hostile {
    begin: i64,
    duration: Option<i64>,
    thread: i32,
    call: &'static str,
    length: Option<i64>,
    errno: i32,
    path: &'static [u8],
}

const HARMLESS: Hostile =
    Hostile { begin: 1, duration: Some(1), thread: 1, call: "read", length: Some(1), errno: 0, path: b"/x" };

impl Row for Hostile {
    type Metadata = Metadata;
    const NOUN: &'static str = "call";
}

impl Table for Hostile {
    const KIND: &'static str = "calls";
    const BAD_ROWS: BadRows = BadRows::Refused;
    const COLUMNS: &'static [Column] = &[
        required("begin_ns", CellType::Int64),
        nullable("duration_ns", CellType::Int64),
        required("thread", CellType::Int32),
        required("call", CellType::Name(|_| None)),
        nullable("length", CellType::Int64),
        column("errno", CellType::Int32),
        nullable("path", CellType::Text),
    ];

    fn write_cells(&self, cells: &mut Buffers) {
        cells.int64(self.begin);
        cells.int64_or_null(self.duration);
        cells.int32(self.thread);
        cells.name(self.call);
        cells.int64_or_null(self.length);
        cells.int32(self.errno);
        cells.text_or_null(Some(self.path));
    }

    fn read_cells(_: &mut Cells<'_>, _: u64) -> std::result::Result<Self, &'static str> {
        Err("not read")
    }

    fn count(&self, metadata: &mut Metadata) {
        metadata.count_row(self.begin);
    }
}

fn read_after_writing(rows: &[Hostile]) -> Result<(Vec<Call>, Metadata)> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.calls.parquet");
    let mut writer = TableWriter::new(Output::create(&path).unwrap()).unwrap();
    rows.iter().for_each(|row| writer.write(row).unwrap());
    writer.finish(&Metadata::new("calls", "test")).unwrap();
    calls_of(&path)
}

#[test]
fn hostile_values_are_errors_that_name_the_row() {
    static LONG: [u8; 70_000] = [b'x'; 70_000];
    assert_eq!(read_after_writing(&[HARMLESS, HARMLESS]).unwrap().0.len(), 2);
    for (row, problem) in [
        (Hostile { begin: i64::MAX, ..HARMLESS }, "row 1: a time is more than 73 years from zero"),
        (Hostile { begin: 0, ..HARMLESS }, "row 1 begins before the row before it"),
        (Hostile { duration: Some(-1), ..HARMLESS }, "row 1: duration_ns is negative"),
        (Hostile { duration: Some(i64::MAX), ..HARMLESS }, "row 1: a time is more than 73 years"),
        (Hostile { thread: -5, ..HARMLESS }, "row 1: thread is not a thread number"),
        (Hostile { call: "brk", ..HARMLESS }, "row 1: call is missing, or not a system call that iosonar knows"),
        (Hostile { length: Some(-1), ..HARMLESS }, "row 1: length is negative"),
        (Hostile { errno: -2, ..HARMLESS }, "row 1: errno is not an error number"),
        (Hostile { path: b"a\0b", ..HARMLESS }, "row 1: a path has a NUL byte"),
        (Hostile { path: &LONG, ..HARMLESS }, "row 1: a text is longer than 64 KiB"),
    ] {
        let error = read_after_writing(&[HARMLESS, row, HARMLESS]).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn a_run_is_no_trace_and_a_trace_is_no_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.calls-run.parquet");
    let metadata = Metadata::new("calls_run", "test");
    create_run(&path).unwrap().finish(&metadata).unwrap();
    let error = calls_of(&path).unwrap_err().to_string();
    assert!(error.contains("a run of calls to files, not a trace of calls to files"), "{error}");
    let path = directory.path().join("x.calls.parquet");
    let metadata = Metadata::new("calls", "test");
    create(&path, &metadata).unwrap().finish(&metadata).unwrap();
    let error = open_run(&path).err().unwrap().to_string();
    assert!(error.contains("a trace of calls to files, not a run of calls to files"), "{error}");
    let error = iosonar_trace::open(&path).err().unwrap().to_string();
    assert!(error.contains("a trace of calls to files, not a load of requests or a run of requests"), "{error}");
}

#[test]
fn a_run_of_calls_of_version_2_has_the_words_of_version_3() {
    let golden = |name| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    assert_eq!(calls_of(&golden("v2.calls.parquet")).unwrap().0.len(), 8);
    let mut reader = open_run(&golden("v2.calls-run.parquet")).unwrap();
    let mut reasons = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        reasons.push(row.delay_reason.name());
    }
    reasons.sort_unstable();
    assert_eq!(reasons, ["backlog", "backlog", "depth", "depth", "input", "predecessor", "thread", "thread"]);
    let metadata = reader.metadata();
    let run = serde_json::to_value(metadata.run.as_ref().unwrap()).unwrap();
    let statistics = &run["statistics"];
    assert_eq!((metadata.schema_version, &statistics["calls"]), (iosonar_trace::SCHEMA_VERSION, &8.into()));
    assert_eq!(
        statistics["delay_reasons"],
        serde_json::json!({"backlog": 2, "depth": 2, "input": 1, "predecessor": 1, "thread": 2})
    );
    for (old, new) in [("response_us", "latency_us"), ("issue_error_us", "delay_not_held_back_us")] {
        assert!(statistics[old].is_null() && statistics[new].is_object(), "{old}");
    }
}

/// A table with each type of column.
fn valid_table() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.calls.parquet");
    let metadata = Metadata::new("calls", "test");
    let mut writer = create(&path, &metadata).unwrap();
    for number in 0..200_i32 {
        let mut call = Call::new(Nanos(i64::from(number) * 1000), 7, CallKind::ALL[number as usize % 40]);
        call.path = (number % 3 > 0).then(|| Name::from(format!("/a/{}", number % 50).as_str()));
        call.fd = (number % 2 > 0).then_some(number);
        call.length = Some(4096);
        writer.write(&call).unwrap();
    }
    writer.finish(&metadata).unwrap();
    std::fs::read(path).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn damage_is_an_error_or_other_values_but_no_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        length in prop::option::of(any::<prop::sample::Index>()),
    ) {
        static WHOLE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(valid_table);
        let mut bytes = WHOLE.clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(length) = length.filter(|length| length.index(4) == 0) {
            bytes.truncate(length.index(bytes.len()));
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.calls.parquet");
        std::fs::write(&path, bytes).unwrap();
        let _ = crate::recognise(&path);
        // Values may have changed, but there are no more rows than written.
        match calls_of(&path) {
            Ok((calls, _)) => prop_assert!(calls.len() <= 200, "{}", calls.len()),
            Err(error) => {
                let text = error.to_string();
                let Some(reason) = text.strip_prefix(&path.display().to_string()) else { panic!("{text}") };
                for foreign in ["Required field", "EOF", "frame", "Unexpected", " at line ", "utf", "Parquet error"] {
                    prop_assert!(!reason.contains(foreign), "{text}");
                }
            }
        }
    }
}
