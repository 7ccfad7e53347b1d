//! What a recording must hold of a row of the run: the request itself, and the flush that the replay made before a write
//! that asks for one. Flushes are the same for whoever reads a recording, whether the load asks for them or the replay
//! makes them: they are counted together.

use iosonar_trace::{Flags, IoResult, Metadata, Op, Sector, Sectors, human};

use super::devices::Devices;
use super::entry::Entry;
use super::flushes::Flushes;

/// What is known of the run's rows after all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// As in [`super::Comparison`], like the others.
    pub issued: u64,
    pub never_issued: u64,
    pub flushes_before_writes: u64,
    pub unseen_flushes: u64,
    /// When the first request was issued, and the last one ended, in ns since virtual zero.
    pub first_issued: Option<i64>,
    pub last_completed: Option<i64>,
    /// Whether some that were issued have not ended.
    pub has_unfinished: bool,
    /// Writes behind which the kernel may have made a flush that nobody asked for.
    pub flushed_behind: u64,
}

impl Told {
    /// What the reader should know of it, one sentence each; `extra` flushes were recorded beyond those of the replay.
    pub fn notes(&self, extra: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unseen_flushes > 0 {
            notes.push(format!(
                "{} flushes not checked: the target has no write cache (`write through`), so the kernel completes flushes before \
                 a recording sees them",
                human::count(self.unseen_flushes)
            ));
        }
        // None at all: then this kernel does not.
        if (1..self.flushed_behind).contains(&extra) {
            notes.push(format!(
                "the kernel adds a flush after each durable write by a blocking system call (--engine threads, page cache): {} \
                 here, but the recording has only {} more flushes, so some may be missing",
                human::count(self.flushed_behind),
                human::count(extra)
            ));
        }
        notes
    }
}

/// What is expected of a run's rows.
pub struct Expected<'a> {
    devices: &'a Devices,
    /// Whether storage was asked at all.
    has_storage: bool,
    calls: Calls,
    /// Whether every write had to be durable.
    is_synchronous: bool,
}

/// Which writes were made by system calls that wait for their end. The ring's own do not wait, and are durable by FUA alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    None,
    /// Those with a flush before them: a ring that polls can't flush, so threads help it.
    Flushed,
    /// All: by threads, or by the page cache on behalf of the ring.
    All,
}

impl<'a> Expected<'a> {
    /// By what the run's footer says.
    pub fn of(run: &Metadata, devices: &'a Devices) -> Self {
        let run = run.run.as_deref();
        let engine = run.and_then(|run| run.engine.text());
        let has = |option: &str| run.is_some_and(|run| run.has(option));
        let calls = match engine {
            Some("threads") => Calls::All,
            _ if has("no_o_direct") => Calls::All,
            _ if has("poll") => Calls::Flushed,
            _ => Calls::None,
        };
        Self {
            devices,
            has_storage: !matches!(engine, Some("null" | "simulate")),
            calls,
            is_synchronous: has("o_sync"),
        }
    }

    /// Enters what a recording must hold of a row.
    pub fn of_row(&self, row: &IoResult, told: &mut Told, enter: &mut dyn FnMut(Entry)) {
        let Some(at) = row.issued else {
            told.never_issued += 1;
            return;
        };
        told.issued += 1;
        told.first_issued = Some(told.first_issued.map_or(at.0, |first| first.min(at.0)));
        match row.completed {
            Some(end) => told.last_completed = told.last_completed.max(Some(end.0)),
            None => told.has_unfinished = true,
        }
        let (group, flushes) = (self.devices.of_issued(row.device), self.devices.flushes_of(row.device));
        // Of a write alone: the replay takes no notice of that flag of another operation, of a flush least of all.
        let is_flushed = row.op == Op::Write && row.flags.has(Flags::PREFLUSH);
        if is_flushed && self.has_storage && flushes != Flushes::FileSystem {
            told.flushes_before_writes += 1;
            if flushes == Flushes::None {
                told.unseen_flushes += 1;
            } else {
                enter(Entry::new(group, Op::Flush, Sector(0), Sectors(0), at.0));
            }
        }
        let waits = self.calls == Calls::All || self.calls == Calls::Flushed && is_flushed;
        let is_durable = row.op == Op::Write && (row.flags.has(Flags::FUA) || self.is_synchronous);
        if flushes == Flushes::Each && waits && is_durable {
            told.flushed_behind += 1;
        }
        if row.op == Op::Flush && flushes == Flushes::None {
            told.unseen_flushes += 1;
        } else {
            enter(Entry::new(group, row.op, row.sector, row.sectors, at.0));
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

    /// How many flushes and others are expected of these rows, and what is told of them.
    fn expected(run: Value, rows: &[IoResult]) -> (usize, usize, Told) {
        let known = Metadata { run: serde_json::from_value(run).unwrap(), ..Metadata::new(Kind::Replay, "test") };
        let devices = Devices::of(&known, &Metadata::new(Kind::Load, "test"));
        let (expected, mut told, mut entries) = (Expected::of(&known, &devices), Told::default(), Vec::new());
        rows.iter().for_each(|row| expected.of_row(row, &mut told, &mut |entry| entries.push(entry.difference().op)));
        let flushes = entries.iter().filter(|op| **op == Op::Flush).count();
        (flushes, entries.len() - flushes, told)
    }

    fn on(kind: &str, write_cache: &str) -> Value {
        json!([{"path": "/dev/sdb", "kind": kind, "write_cache": write_cache, "others": true}])
    }

    const BEFORE: Flags = Flags::PREFLUSH;

    #[test]
    fn a_flush_is_expected_of_an_issued_write_that_asks_for_one_and_of_nothing_else() {
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
        let (flushes, others, told) = expected(run, &rows);
        assert_eq!((flushes, others), (3, 5), "two of the writes, and the one that the load has");
        assert_eq!((told.issued, told.never_issued, told.flushes_before_writes), (6, 1, 2));
        assert_eq!(told.notes(0), Vec::<String>::new());
    }

    #[test]
    fn no_flush_is_expected_where_none_can_be_seen() {
        let rows = [row(Op::Write, 8, BEFORE, Some(1)), row(Op::Flush, 0, Flags::NONE, Some(2))];
        let (flushes, others, told) =
            expected(json!({"engine": "io_uring", "targets": on("block", "write through")}), &rows);
        assert_eq!((flushes, others, told.flushes_before_writes, told.unseen_flushes), (0, 1, 1, 2));
        assert!(told.notes(0)[0].contains("no write cache"), "{:?}", told.notes(0));
        // A file system may make one of several, or none; what engines without I/O pretend to do reaches nothing.
        for run in
            [json!({"targets": on("file", "write back")}), json!({"engine": "null"}), json!({"engine": "simulate"})]
        {
            let (flushes, others, told) = expected(run, &rows);
            assert_eq!((flushes, others, told.flushes_before_writes), (1, 1, 0));
        }
    }

    #[test]
    fn flushes_that_the_kernel_adds_are_told_of_if_they_could_hide_a_loss() {
        let rows = [
            row(Op::Write, 8, Flags::FUA, Some(1)),
            row(Op::Write, 8, BEFORE.with(Flags::FUA), Some(2)),
            row(Op::Write, 8, Flags::NONE, Some(3)),
        ];
        let behind = |engine: &str, options: Value| {
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
            assert_eq!(behind(engine, options.clone()).flushed_behind, writes, "{engine} {options}");
        }
        let told = behind("threads", json!({"o_sync": true}));
        for (extra, notes) in [(0, 0), (1, 1), (2, 1), (3, 0), (4, 0)] {
            assert_eq!(told.notes(extra).len(), notes, "{extra} more than those of the replay");
        }
    }
}
