//! The last pass: everything of which the run knows what it holds is read once more, in the order of its place.

use std::io;

use iosonar_trace::{Flags, Nanos, Op, SECTOR_BYTES};

use iosonar_trace::run_info::{FindingKind, Pass};

use super::block::{BLOCK_SECTORS, Span};
use super::checker::Checker;
use super::findings::finding;
use super::header::{Found, poison};
use crate::address::placement::Geometry;
use crate::engine::{Io, Target};
use crate::issuer::Stop;
use crate::pipeline::buffers::{Buffer, Pool};
use crate::schedule::clock::Clock;
use crate::verify::expected_state::{Place, start_of};

/// Reads in flight.
const DEPTH: usize = 32;
/// Sectors of a read, at most: 256 KiB.
const MOST_SECTORS: u64 = 512;
/// Blocks that are looked up at a time.
const BATCH: usize = 1 << 20;
/// How long it waits for a read before it looks for an order to stop.
const PATIENCE: Nanos = Nanos(100_000_000);

/// How far it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FinalPassProgress {
    /// Sectors that can be checked: it is known what they hold.
    pub known: u64,
    /// Sectors that should be: an estimate if only a sample is known.
    pub to_check: u64,
    /// Those that were read and judged.
    pub checked: u64,
    /// Those that could not be read.
    pub errors: u64,
    /// Those that were not what they had to be.
    pub mismatches: u64,
    /// Whether it came to its end.
    pub is_whole: bool,
}

/// The pass, and what it needs.
pub struct FinalPass<'a> {
    checker: &'a mut Checker,
    pool: &'a mut Pool,
    targets: &'a [Geometry],
    /// Blocks to be read, and how many of them were.
    blocks: Vec<(u64, u8)>,
    at: usize,
    far: FinalPassProgress,
}

/// What the last pass leaves.
#[derive(Debug)]
pub struct LastDone {
    /// Has what was found.
    pub checker: Checker,
    /// How far it came.
    pub far: FinalPassProgress,
    /// What is to be said, if it did not come to its end.
    pub said: Option<String>,
}

/// One read of it.
struct Reading {
    place: Place,
    /// How many of its sectors can be checked.
    checkable: u64,
    buffer: Buffer,
    issued: Nanos,
}

impl<'a> FinalPass<'a> {
    /// Of a run whose requests are all through. Its buffers come from `pool`; `targets` are the run's.
    pub fn new(checker: &'a mut Checker, pool: &'a mut Pool, targets: &'a [Geometry]) -> Self {
        let known = checker.ledger.sectors();
        let to_check = (known as f64 / checker.ledger.share()).round() as u64;
        let far = FinalPassProgress { known, to_check, ..FinalPassProgress::default() };
        Self { checker, pool, targets, blocks: Vec::new(), at: 0, far }
    }

    /// Of a run that ended early.
    pub fn left_out(checker: Checker) -> LastDone {
        let known = checker.ledger.sectors();
        let to_check = (known as f64 / checker.ledger.share()).round() as u64;
        let said = "the run ended early: the last pass over what was written was left out".to_owned();
        LastDone {
            checker,
            far: FinalPassProgress { known, to_check, ..FinalPassProgress::default() },
            said: Some(said),
        }
    }

    /// Reads everything, in the thread that owns the target. `progress` is told how many sectors of how many were
    /// checked. A stop ends it early. Returns also what is to be said if it did not come to its end.
    pub fn run<T: Target, C: Clock>(
        mut self,
        target: &mut T,
        clock: &C,
        stop: &Stop,
        progress: &dyn Fn(FinalPassProgress),
    ) -> (FinalPassProgress, Option<String>) {
        let before = self.checker.findings.mismatches;
        let outcome = self.read_all(target, clock, stop, &mut |checker, far| {
            far.mismatches = checker.findings.mismatches - before;
            progress(*far);
        });
        self.far.is_whole = matches!(outcome, Ok(true));
        let said = match outcome {
            Ok(true) => None,
            Ok(false) => Some("the last pass over what was written was ended before its end".to_owned()),
            Err(error) => Some(format!("the target failed as a whole in the last pass, which ended there: {error}")),
        };
        (self.far, said)
    }

    fn read_all<T: Target, C: Clock>(
        &mut self,
        target: &mut T,
        clock: &C,
        stop: &Stop,
        progress: &mut dyn FnMut(&Checker, &mut FinalPassProgress),
    ) -> io::Result<bool> {
        let mut readings: Vec<Option<Reading>> = (0..DEPTH).map(|_| None).collect();
        let mut ended = false;
        loop {
            let mut staged = false;
            while !ended && !stop.is_requested() {
                let Some(slot) = readings.iter().position(Option::is_none) else { break };
                let Some((place, checkable)) = self.peek() else {
                    ended = true;
                    break;
                };
                let bytes = place.sectors * SECTOR_BYTES;
                let Some(mut buffer) = self.pool.take(bytes) else { break };
                self.advance(place);
                poison(self.pool.arena().bytes_mut(&mut buffer, bytes), self.checker.run());
                let reading = readings[slot].insert(Reading { place, checkable, buffer, issued: clock.now() });
                target.stage(Io {
                    slot: slot as u32,
                    key: place.sector,
                    target: place.target,
                    op: Op::Read,
                    flags: Flags::default(),
                    offset: place.sector * SECTOR_BYTES,
                    length: bytes,
                    buffer: Some(&reading.buffer),
                });
                staged = true;
            }
            if staged {
                target.submit()?;
            }
            let mut found = false;
            while let Some(completion) = target.reap() {
                found = true;
                if let Some(reading) = readings.get_mut(completion.slot as usize).and_then(Option::take) {
                    self.judge(&reading, completion.result, clock.now());
                    self.pool.give(reading.buffer);
                }
            }
            progress(self.checker, &mut self.far);
            if readings.iter().all(Option::is_none) && (ended || stop.is_requested()) {
                return Ok(ended);
            }
            if stop.is_abort() {
                return Ok(false);
            }
            if !found {
                target.wait(PATIENCE)?;
            }
        }
    }

    fn judge(&mut self, reading: &Reading, result: i64, now: Nanos) {
        let Reading { place, checkable, buffer, issued } = reading;
        let sectors = u64::try_from(result).unwrap_or(0).min(place.sectors * SECTOR_BYTES) / SECTOR_BYTES;
        let data = self.pool.arena().bytes(buffer, sectors * SECTOR_BYTES);
        let read = Place { sectors, ..*place };
        self.far.checked += self.checker.look_at_the_end(read, data, Span { issued: *issued, completed: now });
        if sectors < place.sectors {
            // How many of those that are missing could be checked is known only where all are.
            let missing = if sectors == 0 { *checkable } else { (place.sectors - sectors).min(*checkable) };
            self.far.errors += missing;
            let at = (place.target, place.sector + sectors);
            let mut finding = finding(FindingKind::Unreadable, Pass::Final, at, None, &Found::Unread);
            finding.sectors = place.sectors - sectors;
            finding.at_ns = now.0;
            finding.errno = (result < 0).then_some(-result as i32);
            self.checker.findings.add(finding);
        }
    }

    /// The next sectors to be read, and how many of them can be checked.
    fn peek(&mut self) -> Option<(Place, u64)> {
        if self.at == self.blocks.len() {
            let behind = self.blocks.last().map(|(key, _)| *key);
            self.blocks = self.checker.ledger.next(behind, BATCH);
            self.at = 0;
        }
        let most = MOST_SECTORS.min(self.pool.largest() / SECTOR_BYTES);
        let (first_key, first_bits) = *self.blocks.get(self.at)?;
        let (target, start) = start_of(first_key);
        let mut place = self.aligned(target, start, first_bits);
        let mut checkable = u64::from(first_bits.count_ones());
        for &(key, bits) in &self.blocks[self.at + 1..] {
            let (target, start) = start_of(key);
            let next = self.aligned(target, start, bits);
            let end = next.sector + next.sectors;
            if target != place.target || next.sector > place.sector + place.sectors || end - place.sector > most {
                break;
            }
            place.sectors = place.sectors.max(end - place.sector);
            checkable += u64::from(bits.count_ones());
        }
        Some((place, checkable))
    }

    /// Takes the blocks of that read.
    fn advance(&mut self, place: Place) {
        let end = place.sector + place.sectors;
        let is_inside = |key: u64| {
            let (target, start) = start_of(key);
            target == place.target && start < end
        };
        while self.blocks.get(self.at).is_some_and(|(key, _)| is_inside(*key)) {
            self.at += 1;
        }
    }

    /// Those sectors of a block, widened to the target's own blocks.
    fn aligned(&self, target: u16, start: u64, bits: u8) -> Place {
        let geometry = self.targets[usize::from(target)];
        let first = start + u64::from(bits.trailing_zeros());
        let end = start + BLOCK_SECTORS - u64::from(bits.leading_zeros());
        let unit = geometry.block_sectors;
        let sector = first / unit * unit;
        Place { target, sector, sectors: (end.div_ceil(unit) * unit).min(geometry.sectors) - sector }
    }
}
