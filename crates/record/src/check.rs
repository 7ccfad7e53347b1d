//! Whether every request of a replay is in a recording that was made during it.
//!
//! Two multisets of (operation, sector, length) are compared, each target with the recorded device of its name or its
//! numbers; then, for the requests that are in both, the issue times. A constant difference of the two clocks' zeros is
//! taken out. Files may be of any size: what does not fit into memory is compared in several passes, each over the
//! requests whose position falls into its share.

mod clocks;
mod coverage;
mod devices;
mod entry;
mod expected;
mod flushes;
mod pieces;
#[cfg(test)]
mod tests;
mod times;

use iosonar_trace::{IoResult, Metadata, Op, Reader, Request};
use serde::Serialize;

use crate::error::Result;
use clocks::Relation;
use coverage::Tiling;
use devices::Devices;
pub use entry::Difference;
use entry::Entry;
use expected::{Expected, Told};
pub use times::Times;

/// Requests of one side that are compared in one pass, some 200 MB of them.
const PASS: u64 = 8 << 20;

/// Differences that are kept, of each side, some 100 MB of them; all are counted.
const KEPT: usize = 2 << 20;

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether every request that the run issued is in the recording, as far as can be known: never if the run's file is
    /// damaged or was cut short, or if the recording is known to be of another run.
    pub complete: bool,
    /// The recorded devices that the run's targets correspond to by name or numbers, and were compared with; empty if none
    /// does.
    pub devices: Vec<String>,
    /// Rows of the run that could not be read: what became of these requests is unknown.
    pub unreadable_run: u64,
    /// Rows of the recording that could not be read: what is missing may be among them.
    pub unreadable_recording: u64,
    /// Requests that the run issued.
    pub issued: u64,
    /// Flushes that the replay made itself, before writes that have that flag. They are looked for like its requests, and
    /// not counted among these.
    pub flushes_before_writes: u64,
    /// Flushes, of both kinds, on targets without a write cache: the kernel ends them unseen, so they are not looked for.
    pub unseen_flushes: u64,
    /// Requests of the run that were never issued: they are not looked for.
    pub never_issued: u64,
    /// Requests in the recording.
    pub recorded: u64,
    /// Of these, requests that were recorded before the run began or after it ended, where both files tell when that was:
    /// they are not compared.
    pub outside: u64,
    /// How much later than the run's the recorded requests are, in ns, negative if earlier, where both files tell when they
    /// were and no clock's error explains it: they are those of another run.
    pub apart_ns: Option<i64>,
    /// Requests that are in both as they are.
    pub same: u64,
    /// Requests of the run that are in the recording as several adjacent ones: the kernel split them.
    pub split: u64,
    /// Requests of the run that are in the recording as a part of a larger one: the kernel merged them.
    pub merged: u64,
    /// Whether split and merged ones were looked for: not if there are too many differences to keep. What is missing may be
    /// there in pieces then.
    pub looked_for_pieces: bool,
    /// What is not in the recording: requests of the run, and the replay's own flushes.
    pub missing: u64,
    /// Of these, flushes. The kernel does several of them at once on their way to the device.
    pub missing_flushes: u64,
    /// Requests in the recording that are not of the run.
    pub extra: u64,
    /// Issue times: recorded minus run's, of requests that occur equally often in both; `None` if there are none.
    pub times: Option<Times>,
    /// The first of those missing, by position.
    pub missing_requests: Vec<Difference>,
    /// The first of those that are not of the run, by position.
    pub extra_requests: Vec<Difference>,
    /// What the names of devices do not agree on, one sentence each.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// What is known of the run, now that all of it was read.
    #[serde(skip)]
    pub run: Metadata,
    /// The same of the recording.
    #[serde(skip)]
    pub recording: Metadata,
}

impl Comparison {
    /// The name of the recorded device that a difference is on, or of the target that corresponds to it.
    pub fn device_of(&self, of: &Difference) -> Option<&str> {
        self.devices.get(usize::from(of.device?)).map(String::as_str)
    }
}

/// Opens a side anew for each pass.
pub type Open<'a, Row> = &'a mut dyn FnMut() -> Result<Box<dyn Reader<Row>>>;

/// Compares a run with a recording.
///
/// # Errors
/// If one of them can't be read.
pub fn compare(run: Open<IoResult>, recording: Open<Request>) -> Result<Comparison> {
    compare_in_passes(run, recording, PASS, KEPT)
}

fn compare_in_passes(run: Open<IoResult>, recording: Open<Request>, pass_size: u64, kept: usize) -> Result<Comparison> {
    let known = (read_totals(run)?, read_totals(recording)?);
    let Some(relation) = Relation::of(&known.0, &known.1) else {
        return compare_within(known, run, recording, pass_size, kept, None);
    };
    let mut found = compare_within(known.clone(), run, recording, pass_size, kept, Some(&relation))?;
    let mut apart_ns = found.times.and_then(|times| relation.too_early(times.offset_ns));
    if found.missing > 0 && found.outside > 0 {
        // Why: the recording may be of another run, of which all is there, only at another time.
        let whenever = compare_within(known, run, recording, pass_size, kept, None)?;
        let apart = whenever.times.and_then(|times| relation.apart(times.offset_ns));
        if apart.is_some() && whenever.missing < found.missing {
            (found, apart_ns) = (whenever, apart);
        }
    }
    found.apart_ns = apart_ns;
    found.complete &= apart_ns.is_none();
    Ok(found)
}

/// Compares the run with what was recorded while it went on, if the files' `relation` tells when that was.
fn compare_within(
    known: (Metadata, Metadata),
    run: Open<IoResult>,
    recording: Open<Request>,
    pass_size: u64,
    kept: usize,
    relation: Option<&Relation>,
) -> Result<Comparison> {
    let passes = known.0.counts.requests.max(known.1.counts.requests).div_ceil(pass_size).max(1);
    let devices = Devices::of(&known.0, &known.1);
    let expected = Expected::of(&known.0, &devices);
    let mut found = Found { kept, ..Found::default() };
    let mut unreadable = (0, 0);
    for pass in 0..passes {
        // Every pass reads all rows, and each tells the same of them.
        found.told = Told::default();
        found.outside = 0;
        let told = &mut found.told;
        let issued = side(run()?.as_mut(), passes, pass, |row, enter| expected.of_row(row, told, enter))?;
        let window = relation.map(|relation| relation.window(told));
        let recorded = side(recording()?.as_mut(), passes, pass, |row: &Request, enter| {
            let group = devices.of_recorded(row.device);
            if window.is_none_or(|window| window.holds(row.at.0, group != devices::OTHERS)) {
                enter(Entry::new(group, row.op, row.sector, row.sectors, row.at.0));
            } else {
                found.outside += 1;
            }
        })?;
        unreadable = (issued.unreadable, recorded.unreadable);
        found.join(&issued.entries, &recorded.entries);
    }
    let mut found = found.conclude(known, &devices);
    (found.unreadable_run, found.unreadable_recording) = unreadable;
    found.complete &= found.unreadable_run == 0 && found.run.complete;
    Ok(found)
}

/// The metadata of a side, with the totals of all rows: from its footer, else by reading it to its end.
fn read_totals<Row>(open: Open<Row>) -> Result<Metadata> {
    let mut reader = open()?;
    if !reader.has_totals() {
        while reader.next()?.is_some() {}
    }
    Ok(reader.metadata().clone())
}

struct Side {
    entries: Vec<Entry>,
    /// Rows that are missing because they are damaged.
    unreadable: u64,
}

/// One pass' share of a side, sorted. `of_row` enters what is to be compared of a row.
fn side<Row>(
    reader: &mut dyn Reader<Row>,
    passes: u64,
    pass: u64,
    mut of_row: impl FnMut(&Row, &mut dyn FnMut(Entry)),
) -> Result<Side> {
    let mut side = Side { entries: Vec::new(), unreadable: 0 };
    while let Some(row) = reader.next()? {
        of_row(&row, &mut |entry| {
            if entry.share(passes) == pass {
                side.entries.push(entry);
            }
        });
    }
    // Where a reader trusts the footer, it finds out only now.
    side.unreadable = reader.metadata().counts.bad_lines;
    side.entries.sort_unstable();
    Ok(side)
}

/// What the passes found so far.
#[derive(Default)]
struct Found {
    /// Differences of each side to keep, at most.
    kept: usize,
    told: Told,
    recorded: u64,
    outside: u64,
    same: u64,
    missing: Vec<Difference>,
    missing_beyond: u64,
    extra: Vec<Difference>,
    extra_beyond: u64,
    extra_flushes: u64,
    times: times::Collected,
}

impl Found {
    /// Walks both sides, sorted, group by group of what is the same but for its time.
    fn join(&mut self, mut issued: &[Entry], mut recorded: &[Entry]) {
        self.recorded += recorded.len() as u64;
        let mut differences = Vec::new();
        while let Some(key) = [issued.first(), recorded.first()].into_iter().flatten().map(|e| e.key()).min() {
            let (a, b) = (split_group(&mut issued, key), split_group(&mut recorded, key));
            let both = a.len().min(b.len());
            self.same += both as u64;
            let (missing, extra) = (&a[both..], &b[both..]);
            self.missing_beyond += keep(&mut self.missing, self.kept, missing);
            self.extra_beyond += keep(&mut self.extra, self.kept, extra);
            if b.first().is_some_and(|entry| entry.is_flush()) {
                self.extra_flushes += extra.len() as u64;
            }
            // The n-th time of one side belongs to the n-th of the other: but only if none is missing in between.
            if a.len() == b.len() {
                differences.extend(a.iter().zip(b).map(|(a, b)| b.at_ns.saturating_sub(a.at_ns)));
            }
        }
        self.times.add(differences);
    }

    fn conclude(mut self, (run, recording): (Metadata, Metadata), devices: &Devices) -> Comparison {
        let all_kept = self.missing_beyond == 0 && self.extra_beyond == 0;
        // Where one side has all of the other's, nothing of it can be a piece.
        let looked_for_pieces = all_kept || self.missing.is_empty() || self.extra.is_empty();
        let tiling = match looked_for_pieces {
            true => pieces::take_tiled(&mut self.missing, &mut self.extra),
            false => Tiling::default(),
        };
        for of in self.missing.iter_mut().chain(&mut self.extra) {
            of.device = of.device.and_then(|group| devices.place(group + 1));
        }
        self.missing.sort_unstable();
        self.extra.sort_unstable();
        let missing = self.missing.len() as u64 + self.missing_beyond;
        Comparison {
            complete: missing == 0,
            devices: devices.compared(),
            unreadable_run: 0,
            unreadable_recording: 0,
            issued: self.told.issued,
            flushes_before_writes: self.told.flushes_before_writes,
            unseen_flushes: self.told.unseen_flushes,
            never_issued: self.told.never_issued,
            recorded: self.recorded + self.outside,
            outside: self.outside,
            apart_ns: None,
            same: self.same,
            split: tiling.split,
            merged: tiling.merged,
            looked_for_pieces,
            missing,
            missing_flushes: self.missing.iter().filter(|of| of.op == Op::Flush && of.sectors == 0).count() as u64,
            extra: self.extra.len() as u64 + self.extra_beyond,
            times: self.times.conclude(),
            missing_requests: self.missing,
            extra_requests: self.extra,
            notes: devices.notes().into_iter().chain(self.told.notes(self.extra_flushes)).collect(),
            run,
            recording,
        }
    }
}

/// Takes the entries with that key off the front.
fn split_group<'a>(entries: &mut &'a [Entry], key: (u64, u64)) -> &'a [Entry] {
    let length = entries.iter().take_while(|entry| entry.key() == key).count();
    let (group, rest) = entries.split_at(length);
    *entries = rest;
    group
}

/// Keeps as many as there may be, and returns how many more these are.
fn keep(kept: &mut Vec<Difference>, most: usize, entries: &[Entry]) -> u64 {
    let room = most.saturating_sub(kept.len()).min(entries.len());
    kept.extend(entries[..room].iter().map(|entry| entry.difference()));
    (entries.len() - room) as u64
}
