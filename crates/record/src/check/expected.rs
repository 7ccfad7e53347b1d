//! The requests that a recording must contain for a row of the run: the request itself, and the flush that the replay
//! submitted before a write with the preflush flag. A recording does not distinguish flushes of the load from flushes
//! of the replay: they are counted together.

use iosonar_trace::{Flags, IoResult, Metadata, Op, Sector, Sectors, human};

use super::devices::Devices;
use super::entry::Entry;
use super::flushes::Flushes;

/// Counts over all rows of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// As in [`super::Comparison`]; so are the next three.
    pub issued: u64,
    pub never_issued: u64,
    pub flushes_before_writes: u64,
    pub unseen_flushes: u64,
    /// When the first request was issued, and the last one completed, in ns since virtual zero.
    pub first_issued: Option<i64>,
    pub last_completed: Option<i64>,
    /// Whether some issued requests have not completed.
    pub has_unfinished: bool,
    /// Writes after which the kernel may have added a flush.
    pub flushed_after: u64,
}

impl RunSummary {
    /// Notes for the user, one sentence each. `extra` flushes were recorded beyond those of the replay.
    pub fn notes(&self, extra: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unseen_flushes > 0 {
            notes.push(format!(
                "{} flushes not checked: the target has no write cache (`write through`), so the kernel completes flushes before \
                 a recording sees them",
                human::count(self.unseen_flushes)
            ));
        }
        // Without any extra flush, this kernel does not add flushes.
        if (1..self.flushed_after).contains(&extra) {
            notes.push(format!(
                "the kernel adds a flush after each durable write by a blocking system call (--engine threads, page cache): {} \
                 here, but the recording has only {} more flushes, so some may be missing",
                human::count(self.flushed_after),
                human::count(extra)
            ));
        }
        notes
    }
}

/// Derives the expected requests from the run's rows.
pub struct Expected<'a> {
    devices: &'a Devices,
    /// Whether the engine did I/O at all.
    does_io: bool,
    blocking_writes: BlockingWrites,
    /// Whether every write had to be durable (`--o-sync`).
    is_synchronous: bool,
}

/// Which writes were made by blocking system calls. The kernel adds a flush to durable ones; asynchronous writes of
/// io_uring are durable by FUA alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockingWrites {
    None,
    /// Writes with a preceding flush: a polling ring cannot flush, so threads do it.
    Flushed,
    /// All: made by threads, or through the page cache, where io_uring uses worker threads.
    All,
}

impl<'a> Expected<'a> {
    /// From the run's footer.
    pub fn of(run: &Metadata, devices: &'a Devices) -> Self {
        let run = run.run.as_deref();
        let engine = run.and_then(|run| run.engine.text());
        let blocking_writes = match engine {
            Some("threads") => BlockingWrites::All,
            _ if run.is_some_and(|run| run.is_cached()) => BlockingWrites::All,
            _ if run.is_some_and(|run| run.is_polled()) => BlockingWrites::Flushed,
            _ => BlockingWrites::None,
        };
        Self {
            devices,
            does_io: !matches!(engine, Some("null" | "simulate")),
            blocking_writes,
            is_synchronous: run.is_some_and(|run| run.is_synchronous()),
        }
    }

    /// Adds the requests that a recording must contain for a row, and counts the row in `summary`.
    pub fn add_row(&self, row: &IoResult, summary: &mut RunSummary, add: &mut dyn FnMut(Entry)) {
        let Some(at) = row.issued else {
            summary.never_issued += 1;
            return;
        };
        summary.issued += 1;
        summary.first_issued = Some(summary.first_issued.map_or(at.0, |first| first.min(at.0)));
        match row.completed {
            Some(end) => summary.last_completed = summary.last_completed.max(Some(end.0)),
            None => summary.has_unfinished = true,
        }
        let (group, flushes) = (self.devices.of_issued(row.device), self.devices.flushes_of(row.device));
        // Only for writes: the replay ignores this flag of other operations, including flushes.
        let is_flushed = row.op == Op::Write && row.flags.has(Flags::PREFLUSH);
        if is_flushed && self.does_io && flushes != Flushes::FileSystem {
            summary.flushes_before_writes += 1;
            if flushes == Flushes::None {
                summary.unseen_flushes += 1;
            } else {
                add(Entry::new(group, Op::Flush, Sector(0), Sectors(0), at.0));
            }
        }
        let is_blocking = self.blocking_writes == BlockingWrites::All
            || self.blocking_writes == BlockingWrites::Flushed && is_flushed;
        let is_durable = row.op == Op::Write && (row.flags.has(Flags::FUA) || self.is_synchronous);
        if flushes == Flushes::Each && is_blocking && is_durable {
            summary.flushed_after += 1;
        }
        if row.op == Op::Flush && flushes == Flushes::None {
            summary.unseen_flushes += 1;
        } else {
            add(Entry::new(group, row.op, row.sector, row.sectors, at.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Kind, Nanos, Outcome, Request};
    use serde_json::{Value, json};

    use super::*;

    fn row(op: Op, sectors: u64, flags: Flags, issued: Option<i64>) -> IoResult {
        let request = Request { flags, ..Request::new(Nanos(0), op, Sector(sectors * 8), Sectors(sectors)) };
        IoResult { issued: issued.map(Nanos), outcome: Outcome::Ok, ..IoResult::of(&request, 0) }
    }

    /// The number of flushes and of other requests expected for these rows, and the summary.
    fn expected(run: Value, rows: &[IoResult]) -> (usize, usize, RunSummary) {
        let known = Metadata { run: serde_json::from_value(run).unwrap(), ..Metadata::new(Kind::Replay, "test") };
        let devices = Devices::of(&known, &Metadata::new(Kind::Load, "test"));
        let (expected, mut summary, mut entries) = (Expected::of(&known, &devices), RunSummary::default(), Vec::new());
        rows.iter()
            .for_each(|row| expected.add_row(row, &mut summary, &mut |entry| entries.push(entry.difference().op)));
        let flushes = entries.iter().filter(|op| **op == Op::Flush).count();
        (flushes, entries.len() - flushes, summary)
    }

    fn on(kind: &str, write_cache: &str) -> Value {
        json!([{"path": "/dev/sdb", "kind": kind, "write_cache": write_cache, "others": true}])
    }

    const BEFORE: Flags = Flags::PREFLUSH;

    #[test]
    fn only_an_issued_write_with_preflush_expects_a_flush() {
        let run = json!({"engine": "io_uring", "targets": on("block", "write back")});
        let rows = [
            row(Op::Write, 8, BEFORE, Some(1)),
            row(Op::Write, 8, BEFORE.with(Flags::FUA), Some(2)),
            row(Op::Write, 8, BEFORE, None),
            row(Op::Write, 8, Flags::FUA, Some(3)),
            row(Op::Read, 8, BEFORE, Some(4)),
            row(Op::Discard, 8, BEFORE, Some(5)),
            row(Op::Flush, 0, BEFORE.with(Flags::SYNC), Some(6)),
        ];
        let (flushes, others, summary) = expected(run, &rows);
        assert_eq!((flushes, others), (3, 5), "two before writes, and one of the load");
        assert_eq!((summary.issued, summary.never_issued, summary.flushes_before_writes), (6, 1, 2));
        assert_eq!(summary.notes(0), Vec::<String>::new());
    }

    #[test]
    fn no_flush_is_expected_if_a_recording_cannot_show_it() {
        let rows = [row(Op::Write, 8, BEFORE, Some(1)), row(Op::Flush, 0, Flags::NONE, Some(2))];
        let (flushes, others, summary) =
            expected(json!({"engine": "io_uring", "targets": on("block", "write through")}), &rows);
        assert_eq!((flushes, others, summary.flushes_before_writes, summary.unseen_flushes), (0, 1, 1, 2));
        assert!(summary.notes(0)[0].contains("no write cache"), "{:?}", summary.notes(0));
        // A file system may combine flushes or omit them; engines without I/O submit nothing.
        for run in
            [json!({"targets": on("file", "write back")}), json!({"engine": "null"}), json!({"engine": "simulate"})]
        {
            let (flushes, others, summary) = expected(run, &rows);
            assert_eq!((flushes, others, summary.flushes_before_writes), (1, 1, 0));
        }
    }

    #[test]
    fn a_warning_says_if_kernel_flushes_could_hide_missing_ones() {
        let rows = [
            row(Op::Write, 8, Flags::FUA, Some(1)),
            row(Op::Write, 8, BEFORE.with(Flags::FUA), Some(2)),
            row(Op::Write, 8, Flags::NONE, Some(3)),
        ];
        let summary_of = |engine: &str, options: Value| {
            expected(json!({"engine": engine, "options": options, "targets": on("block", "write back")}), &rows).2
        };
        for (engine, options, writes) in [
            ("io_uring", json!({}), 0),
            ("io_uring", json!({"o_sync": true}), 0),
            ("io_uring", json!({"poll": true}), 1),
            ("io_uring", json!({"no_o_direct": true}), 2),
            ("threads", json!({}), 2),
            ("threads", json!({"o_sync": true}), 3),
        ] {
            assert_eq!(summary_of(engine, options.clone()).flushed_after, writes, "{engine} {options}");
        }
        let summary = summary_of("threads", json!({"o_sync": true}));
        for (extra, notes) in [(0, 0), (1, 1), (2, 1), (3, 0), (4, 0)] {
            assert_eq!(summary.notes(extra).len(), notes, "{extra} extra");
        }
    }
}
