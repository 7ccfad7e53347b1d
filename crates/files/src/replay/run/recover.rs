//! Makes the result of a replay that was killed.

use std::path::Path;

use iosonar_trace::journal::{self, Journal};
use iosonar_trace::run_info::{OpenMap, OptionValue};

use super::checks::check_name;
use super::execution::{Finished, publish};
use crate::replay::error::Result;
use crate::replay::journal::Recorded;
use crate::replay::statistics::{Counter, Engine};

/// The warning in the result of a replay that was killed.
const RECOVERED: &str = "the replay was killed: calls in progress, and those of its last quarter of a second, have no row; \
                         files are as it left them. Not known are the most calls in flight, the time that the replayer lost, and whether \
                         the order was kept";

/// Whether the file is the journal of a replay of calls.
pub fn is_journal(path: &Path) -> bool {
    use iosonar_trace::journal::Entry as _;
    journal::layout_of(path).is_some_and(|layout| Recorded::LAYOUTS.contains(&layout))
}

/// Writes the result of a replay that was killed, from its journal. Counts the statistics anew, and marks the result as
/// incomplete.
///
/// # Errors
/// If the journal is damaged at its start, or the result cannot be written. Then the journal is kept.
pub fn recover(journal: &Path, output: &Path) -> Result<Finished> {
    check_name(output)?;
    let mut rows = Journal::<Recorded>::open(journal)?;
    let mut metadata = rows.header().clone();
    let run = metadata.run.get_or_insert_default();
    let options = run.options.known().cloned().unwrap_or_default();
    let mut counter = Counter::again(&options, run.statistics.known());
    while let Some(entry) = rows.next_entry()? {
        counter.add(&entry.row, entry.begin_in_trace);
    }
    let factor = options.get("factor").number().unwrap_or(1.0);
    let fake = run.fake.text().map(str::to_owned);
    let statistics = counter.statistics(factor, false, Engine::default(), fake);
    run.warnings = [run.warnings.list(), &[RECOVERED.to_owned()]].concat().into();
    run.statistics = OpenMap::of(&statistics).into();
    metadata.complete = false;
    let replaces = *options.get("overwrite") == OptionValue::Flag(true);
    let losses = publish(journal, output, replaces, &metadata)?;
    let warnings = [vec![RECOVERED.to_owned()], losses].concat();
    Ok(Finished { output: output.to_owned(), statistics, warnings })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use iosonar_trace::Nanos;
    use iosonar_trace::journal::JournalWriter;
    use serde_json::{Value, json};

    use super::*;
    use crate::{CallKind, CallOutcome, CallResult, DelayReason, Metadata};

    /// A row whose numbers are all the same.
    fn entry(number: i64) -> Recorded {
        let (time, number) = (Some(Nanos(number)), Some(number));
        let row = CallResult {
            call: number.unwrap_or_default() as u64,
            instance: number.unwrap_or_default() as u32,
            thread: 1,
            kind: CallKind::Read,
            path: None,
            position: number.map(|number| number as u64),
            length: number.map(|number| number as u64),
            scheduled: time.unwrap_or_default(),
            issued: time,
            completed: time,
            predecessors_end: time,
            gap: time,
            delay_reason: DelayReason::Predecessor,
            result: number,
            errno: number.unwrap_or_default() as i32,
            expected_result: number,
            expected_errno: 0,
            expected_duration: time,
            outcome: CallOutcome::More,
        };
        Recorded { row, begin_in_trace: time.unwrap_or_default() }
    }

    #[test]
    fn a_recovered_replay_has_null_for_what_only_its_end_knows() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("r.calls-run.parquet");
        let path = journal::path_for(&output);
        let header = Metadata { kind: "calls_run".into(), ..Metadata::default() };
        let mut writer = JournalWriter::create(&path, &header, 3).unwrap();
        assert!(writer.write(&entry(1)));
        writer.close();
        let Finished { statistics, warnings, .. } = recover(&path, &output).unwrap();
        let found = serde_json::to_value(&statistics).unwrap();
        for key in ["max_in_flight", "lost_s", "order", "outdegree"] {
            assert_eq!(found[key], json!(null), "{key}");
        }
        assert_eq!(found["calls"], 1);
        assert!(warnings[0].contains("the time that the replayer lost"), "{warnings:?}");
    }

    /// A checksum may be right although the numbers are not.
    #[test]
    fn recovering_odd_headers_and_rows_never_panics() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("r.calls-run.parquet");
        let path = journal::path_for(&output);
        let whole = json!({
            "options": {"timing": "exact", "instances": 2, "factor": 1.5, "extra_delay": 0, "perturb": null},
            "statistics": {"changes_not_replayed": {"truncate": 3}},
            "warnings": ["before"],
            "fake": null,
        });
        let pointers = [
            "/options",
            "/options/timing",
            "/options/instances",
            "/options/factor",
            "/options/perturb",
            "/statistics",
            "/statistics/changes_not_replayed",
            "/statistics/changes_not_replayed/truncate",
            "/warnings",
            "/fake",
        ];
        let odd = [json!(null), json!(-1), json!(u64::MAX), json!(1e300), json!("x"), json!([[7]]), json!({"x": {}})];
        let (mut recovered, mut refused) = (0, 0);
        for (pointer, odd) in pointers.iter().flat_map(|pointer| odd.iter().map(move |odd| (pointer, odd))) {
            let mut run: Value = whole.clone();
            *run.pointer_mut(pointer).unwrap() = odd.clone();
            let Ok(run) = serde_json::from_value(run) else { continue };
            let header = Metadata { kind: "calls_run".into(), run: Some(run), ..Metadata::default() };
            for numbers in [[0, 1, 2], [i64::MAX - 1; 3], [i64::MIN + 1, 0, i64::MAX - 1]] {
                let mut writer = JournalWriter::create(&path, &header, 3).unwrap();
                assert!(numbers.into_iter().all(|number| writer.write(&entry(number))));
                writer.close();
                match recover(&path, &output) {
                    Ok(_) => recovered += 1,
                    Err(_) => refused += 1,
                }
                let _ = (fs::remove_file(&output), fs::remove_file(&path));
            }
        }
        assert!(recovered > 0 && refused > 0, "{recovered} recovered, {refused} refused");
    }
}
