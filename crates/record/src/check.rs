//! Checks that every request of a replay is in a recording made during it.
//!
//! Compares two multisets of (operation, sector, length), each target with the recorded device of the same name or
//! numbers; then the issue times of the requests in both. The constant difference of the two zeros is subtracted. Files
//! may have any size: what does not fit into memory is compared in several passes, each over the requests whose hash
//! falls into its share.

mod clocks;
mod coverage;
mod devices;
mod entry;
mod expected;
mod flushes;
mod pieces;
mod schedule;
#[cfg(test)]
mod tests;
mod times;

use iosonar_trace::{Counts, IoResult, Metadata, Nanos, Reader, Request, Row};
use serde::Serialize;

use crate::error::Result;
use clocks::ClockRelation;
use coverage::Tiling;
use devices::Devices;
pub use entry::Difference;
use entry::Entry;
use expected::{Expected, RunSummary};
use schedule::Schedule;
pub use times::Times;

/// The most requests of one side in one pass: some 200 MB.
const REQUESTS_PER_PASS: u64 = 8 << 20;

/// The most differences kept of each side: some 100 MB. All are counted.
const MAX_DIFFERENCES: usize = 2 << 20;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether every request that the run issued is in the recording, as far as the files show: false if the run's file
    /// is damaged or was cut short, or if the recording is of another run.
    pub complete: bool,
    /// The recorded devices that match the run's targets by name or numbers, and were compared with them; empty if none
    /// matches.
    pub devices: Vec<String>,
    /// Rows of the run that could not be read; their requests were not checked.
    pub unreadable_run: u64,
    /// Rows of the recording that could not be read; missing requests may be among them.
    pub unreadable_recording: u64,
    /// Requests that the run issued.
    pub issued: u64,
    /// Flushes that the replay submitted itself, before writes with the preflush flag. They are checked like the run's
    /// requests, but `issued` does not include them.
    pub flushes_before_writes: u64,
    /// Flushes, of both kinds, on targets without a write cache: the kernel completes them before a recording sees
    /// them, so they are not checked.
    pub unseen_flushes: u64,
    /// Requests of the run that were never issued; they are not checked.
    pub never_issued: u64,
    /// Requests in the recording.
    pub recorded: u64,
    /// Of these, requests recorded before the run began or after it ended, if both files tell the time: they are not
    /// compared.
    pub outside: u64,
    /// How much later the recorded requests are than the run's, in ns, negative if earlier. Set if both files tell the
    /// time and no clock error explains the difference: the recording is then of another run.
    pub apart_ns: Option<i64>,
    /// Whether the recording is the load that the run replayed: its requests exactly at their scheduled times.
    pub is_the_load: bool,
    /// Requests that are in both unchanged.
    pub same: u64,
    /// Requests of the run that are in the recording as several adjacent ones: the kernel split them.
    pub split: u64,
    /// Requests of the run that are in the recording as part of a larger one: the kernel merged them.
    pub merged: u64,
    /// Whether split and merged requests were searched for: false if there are too many differences to keep. Missing
    /// requests may then be in the recording in pieces.
    pub looked_for_pieces: bool,
    /// Requests of the run, and flushes of the replay, that are not in the recording.
    pub missing: u64,
    /// Of these, flushes. The kernel may combine several flushes into one.
    pub missing_flushes: u64,
    /// Requests in the recording that are not of the run.
    pub extra: u64,
    /// Issue times, recorded minus the run's, of requests that occur equally often in both; `None` if there are none.
    pub times: Option<Times>,
    /// The first missing ones, by position.
    pub missing_requests: Vec<Difference>,
    /// The first additional ones, by position.
    pub extra_requests: Vec<Difference>,
    /// Notes for the user, such as devices that do not match; one sentence each.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// The run's metadata, after all rows were read.
    #[serde(skip)]
    pub run: Metadata,
    /// The same of the recording.
    #[serde(skip)]
    pub recording: Metadata,
}

impl Comparison {
    /// The recorded device that a difference is on, or that matches its target.
    pub fn device_of(&self, difference: &Difference) -> Option<&str> {
        self.devices.get(usize::from(difference.device?)).map(String::as_str)
    }
}

/// Opens one side; called once for each pass.
pub type Open<'a, R> = &'a mut dyn FnMut() -> Result<Box<dyn Reader<R>>>;

/// Compares a run with a recording.
///
/// # Errors
/// If one of them cannot be read.
pub fn compare(run: Open<IoResult>, recording: Open<Request>) -> Result<Comparison> {
    compare_in_passes(run, recording, REQUESTS_PER_PASS, MAX_DIFFERENCES)
}

fn compare_in_passes(
    run: Open<IoResult>,
    recording: Open<Request>,
    pass_size: u64,
    max_differences: usize,
) -> Result<Comparison> {
    let metadata = (read_totals(run)?, read_totals(recording)?);
    let Some(relation) = ClockRelation::of(&metadata.0, &metadata.1) else {
        return compare_within(metadata, run, recording, pass_size, max_differences, None);
    };
    let mut found = compare_within(metadata.clone(), run, recording, pass_size, max_differences, Some(&relation))?;
    let mut apart_ns = found.times.and_then(|times| relation.too_early(times.offset_ns));
    if found.missing > 0 && found.outside > 0 {
        // The recording may be of another run, and have all requests at another time.
        let at_any_time = compare_within(metadata, run, recording, pass_size, max_differences, None)?;
        let apart = at_any_time.times.and_then(|times| relation.apart(times.offset_ns));
        if apart.is_some() && at_any_time.missing < found.missing {
            (found, apart_ns) = (at_any_time, apart);
        }
    }
    found.apart_ns = apart_ns;
    found.complete &= apart_ns.is_none();
    Ok(found)
}

/// Compares the run with the requests recorded during it; with all requests if `relation` is `None`.
fn compare_within(
    metadata: (Metadata, Metadata),
    run: Open<IoResult>,
    recording: Open<Request>,
    pass_size: u64,
    max_differences: usize,
    relation: Option<&ClockRelation>,
) -> Result<Comparison> {
    let passes = metadata.0.counts.requests.max(metadata.1.counts.requests).div_ceil(pass_size).max(1);
    let devices = Devices::of(&metadata.0, &metadata.1);
    let expected = Expected::of(&metadata.0, &devices);
    let mut matches = Matches { max_differences, ..Matches::default() };
    let mut unreadable = (0, 0);
    let zeros = (Nanos(metadata.0.span.first_ns), Nanos(metadata.1.span.first_ns));
    for pass in 0..passes {
        // Every pass reads all rows, and so computes the same summary.
        matches.summary = RunSummary::default();
        matches.schedule = Schedule::default();
        matches.outside = 0;
        let (summary, schedule) = (&mut matches.summary, &mut matches.schedule);
        let issued = read_side(run()?.as_mut(), passes, pass, |row, add| {
            schedule.add_row(row, zeros.0);
            expected.add_row(row, summary, add);
        })?;
        let window = relation.map(|relation| relation.window(summary));
        let recorded = read_side(recording()?.as_mut(), passes, pass, |row: &Request, add| {
            matches.schedule.add_recorded(row, zeros.1);
            let group = devices.of_recorded(row.device);
            if window.is_none_or(|window| window.contains(row.at.0, group != devices::OTHERS)) {
                add(Entry::new(group, row.op, row.sector, row.sectors, row.at.0));
            } else {
                matches.outside += 1;
            }
        })?;
        // Bad lines of the load are no rows of the run, but those of a recording may be requests.
        unreadable = (issued.losses.unreadable_rows, recorded.losses.bad_lines);
        matches.join(&issued.entries, &recorded.entries);
    }
    let mut comparison = matches.conclude(metadata, &devices);
    (comparison.unreadable_run, comparison.unreadable_recording) = unreadable;
    comparison.complete &= comparison.unreadable_run == 0 && comparison.run.complete;
    Ok(comparison)
}

/// The metadata of a side, with the totals of all rows: from its footer, else by reading it to its end.
fn read_totals<R: Row<Metadata = Metadata>>(open: Open<R>) -> Result<Metadata> {
    let mut reader = open()?;
    if !reader.has_totals() {
        while reader.next()?.is_some() {}
    }
    Ok(reader.metadata().clone())
}

struct Side {
    entries: Vec<Entry>,
    /// What could not be read, among other counts.
    losses: Counts,
}

/// One pass's share of a side, sorted. `add_row` adds the entries to compare of a row.
fn read_side<R: Row<Metadata = Metadata>>(
    reader: &mut dyn Reader<R>,
    passes: u64,
    pass: u64,
    mut add_row: impl FnMut(&R, &mut dyn FnMut(Entry)),
) -> Result<Side> {
    let mut side = Side { entries: Vec::new(), losses: Counts::default() };
    while let Some(row) = reader.next()? {
        add_row(&row, &mut |entry| {
            if entry.share(passes) == pass {
                side.entries.push(entry);
            }
        });
    }
    // A reader that trusts the footer detects damaged rows only while reading.
    side.losses = reader.metadata().counts.clone();
    side.entries.sort_unstable();
    Ok(side)
}

/// The results of the passes so far.
#[derive(Default)]
struct Matches {
    /// The most differences to keep of each side.
    max_differences: usize,
    summary: RunSummary,
    schedule: Schedule,
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

impl Matches {
    /// Joins both sorted sides, by groups of entries that differ in time only.
    fn join(&mut self, mut issued: &[Entry], mut recorded: &[Entry]) {
        self.recorded += recorded.len() as u64;
        let mut differences = Vec::new();
        while let Some(key) = [issued.first(), recorded.first()].into_iter().flatten().map(|e| e.key()).min() {
            let (a, b) = (split_group(&mut issued, key), split_group(&mut recorded, key));
            let both = a.len().min(b.len());
            self.same += both as u64;
            let (missing, extra) = (&a[both..], &b[both..]);
            self.missing_beyond += keep(&mut self.missing, self.max_differences, missing);
            self.extra_beyond += keep(&mut self.extra, self.max_differences, extra);
            if b.first().is_some_and(|entry| entry.is_flush()) {
                self.extra_flushes += extra.len() as u64;
            }
            // The n-th time of one side belongs to the n-th of the other, provided that none is missing in between.
            if a.len() == b.len() {
                differences.extend(a.iter().zip(b).map(|(a, b)| b.at_ns.saturating_sub(a.at_ns)));
            }
        }
        self.times.add(differences);
    }

    fn conclude(mut self, (run, recording): (Metadata, Metadata), devices: &Devices) -> Comparison {
        let all_kept = self.missing_beyond == 0 && self.extra_beyond == 0;
        // If one side has no differences, no difference of the other can be a piece of one.
        let looked_for_pieces = all_kept || self.missing.is_empty() || self.extra.is_empty();
        let tiling = match looked_for_pieces {
            true => pieces::match_pieces(&mut self.missing, &mut self.extra),
            false => Tiling::default(),
        };
        for difference in self.missing.iter_mut().chain(&mut self.extra) {
            difference.device = difference.device.and_then(|group| devices.compared_index(group + 1));
        }
        self.missing.sort_unstable();
        self.extra.sort_unstable();
        let missing = self.missing.len() as u64 + self.missing_beyond;
        Comparison {
            complete: missing == 0 && !self.schedule.is_the_load(),
            is_the_load: self.schedule.is_the_load(),
            devices: devices.compared(),
            unreadable_run: 0,
            unreadable_recording: 0,
            issued: self.summary.issued,
            flushes_before_writes: self.summary.flushes_before_writes,
            unseen_flushes: self.summary.unseen_flushes,
            never_issued: self.summary.never_issued,
            recorded: self.recorded + self.outside,
            outside: self.outside,
            apart_ns: None,
            same: self.same,
            split: tiling.split,
            merged: tiling.merged,
            looked_for_pieces,
            missing,
            missing_flushes: self.missing.iter().filter(|missing| missing.is_flush()).count() as u64,
            extra: self.extra.len() as u64 + self.extra_beyond,
            times: self.times.conclude(),
            missing_requests: self.missing,
            extra_requests: self.extra,
            notes: devices.notes().into_iter().chain(self.summary.notes(self.extra_flushes)).collect(),
            run,
            recording,
        }
    }
}

/// Splits the entries with that key off the front.
fn split_group<'a>(entries: &mut &'a [Entry], key: (u64, u64)) -> &'a [Entry] {
    let length = entries.iter().take_while(|entry| entry.key() == key).count();
    let (group, rest) = entries.split_at(length);
    *entries = rest;
    group
}

/// Keeps at most `most` differences; returns the number of those dropped.
fn keep(kept: &mut Vec<Difference>, most: usize, entries: &[Entry]) -> u64 {
    let room = most.saturating_sub(kept.len()).min(entries.len());
    kept.extend(entries[..room].iter().map(|entry| entry.difference()));
    (entries.len() - room) as u64
}
