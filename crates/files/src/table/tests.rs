//! Reading of written tables, and of wrong ones.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::{CallKind, CallOutcome, HeldBy, Name, OpenOptions};

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
        (fd, fd2) in any::<(Option<i32>, Option<i32>)>(), (fd_path, path, path2) in (any_name(), any_name(), any_name()),
        (offset, length) in (any::<Option<i64>>(), prop::option::of(0..u64::MAX >> 1)), flags in any::<u64>(),
        mode in any::<Option<u32>>(), result in any::<Option<i64>>(), errno in 0..4096,
    ) -> Call {
        Call {
            begin: Nanos(begin), duration: duration.map(Nanos), thread, process, kind: CallKind::ALL[kind], is_uring, fd, fd2,
            fd_path, path, path2, offset, length, flags, mode, result, errno,
        }
    }
}

prop_compose! {
    fn any_result()(
        call in any_call(), instance in 0..u32::MAX >> 1, number in 0..u64::MAX >> 1,
        times in prop::array::uniform4(prop::option::of(-i64::MAX / 4..i64::MAX / 4)), position in prop::option::of(0..u64::MAX >> 1),
        (held_by, outcome) in (0..HeldBy::ALL.len(), 0..CallOutcome::ALL.len()),
        (expected_result, expected_errno) in (any::<Option<i64>>(), 0..4096),
    ) -> CallResult {
        let [issued, completed, predecessors_end, gap] = times.map(|time| time.map(Nanos));
        CallResult {
            call: number, instance, thread: call.thread, kind: call.kind, path: call.path, position, length: call.length,
            scheduled: call.begin, issued, completed, predecessors_end, gap, held_by: HeldBy::ALL[held_by],
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
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.calls.parquet");
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
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.calls-run.parquet");
        let metadata = Metadata { run: Some(serde_json::json!({"options": {"order": "fs"}})), ..Metadata::new("calls_run", "x") };
        let mut writer = create_run(&path, &metadata).unwrap();
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
