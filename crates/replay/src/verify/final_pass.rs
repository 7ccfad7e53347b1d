//! The final pass: reads all sectors with known content once more, in order.

use std::io;

use iosonar_device::geometry::Geometry;
use iosonar_pacing::Stop;
use iosonar_pacing::buffers::{Buffer, Pool};
use iosonar_pacing::clock::Clock;
use iosonar_trace::run_info::{FindingKind, Pass};
use iosonar_trace::{Flags, Nanos, Op, SECTOR_BYTES};

use super::block::{BLOCK_SECTORS, Span};
use super::checker::Checker;
use super::findings::finding;
use super::header::{Found, poison};
use crate::engine::{Io, Target};
use crate::verify::expected_state::{SectorRange, block_start};

/// Reads in flight.
const DEPTH: usize = 32;
/// Maximum number of sectors per read: 256 KiB.
const MAX_SECTORS: u64 = 512;
/// Blocks looked up at a time.
const BATCH: usize = 1 << 20;
/// Maximum wait for a read, so that a stop is noticed.
const MAX_WAIT: Nanos = Nanos(100_000_000);

/// Progress of the final pass, in sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FinalPassProgress {
    /// With known content.
    pub known: u64,
    /// To be checked: an estimate if only a sample is known.
    pub to_check: u64,
    /// Read and checked.
    pub checked: u64,
    /// Unreadable.
    pub errors: u64,
    /// With wrong content.
    pub mismatches: u64,
    /// Whether the pass is complete.
    pub is_complete: bool,
}

impl FinalPassProgress {
    fn at_start(checker: &Checker) -> Self {
        let known = checker.expected_state.sectors();
        let to_check = (known as f64 / checker.expected_state.known_share()).round() as u64;
        Self { known, to_check, ..Self::default() }
    }
}

/// Reads everything that the run wrote, after its end.
pub struct FinalPass<'a> {
    checker: &'a mut Checker,
    pool: &'a mut Pool,
    targets: &'a [Geometry],
    /// Blocks to read; those before `at` were read.
    blocks: Vec<(u64, u8)>,
    at: usize,
    progress: FinalPassProgress,
}

/// The result of the final pass.
#[derive(Debug)]
pub struct FinalPassOutcome {
    /// Contains the findings.
    pub checker: Checker,
    /// Its progress at the end.
    pub progress: FinalPassProgress,
    /// A warning if it is incomplete.
    pub warning: Option<String>,
}

/// A read in flight.
struct PendingRead {
    range: SectorRange,
    /// How many of its sectors can be checked.
    checkable: u64,
    buffer: Buffer,
    issued: Nanos,
}

impl<'a> FinalPass<'a> {
    /// A pass after all requests have completed. Its buffers come from `pool`.
    pub fn new(checker: &'a mut Checker, pool: &'a mut Pool, targets: &'a [Geometry]) -> Self {
        let progress = FinalPassProgress::at_start(checker);
        Self { checker, pool, targets, blocks: Vec::new(), at: 0, progress }
    }

    /// Skips the pass after a run that ended early.
    pub fn skipped(checker: Checker) -> FinalPassOutcome {
        let warning = "the run ended early: the final verification pass was skipped".to_owned();
        FinalPassOutcome { progress: FinalPassProgress::at_start(&checker), checker, warning: Some(warning) }
    }

    /// Reads all sectors, in the thread that owns the target, until the end or a stop. Calls `report` regularly.
    /// Returns a warning if the pass is incomplete.
    pub fn run<T: Target, C: Clock>(
        mut self,
        target: &mut T,
        clock: &C,
        stop: &Stop,
        report: &dyn Fn(FinalPassProgress),
    ) -> (FinalPassProgress, Option<String>) {
        let before = self.checker.findings.mismatches;
        let outcome = self.read_all(target, clock, stop, &mut |checker, progress| {
            progress.mismatches = checker.findings.mismatches - before;
            report(*progress);
        });
        self.progress.is_complete = matches!(outcome, Ok(true));
        let warning = match outcome {
            Ok(true) => None,
            Ok(false) => Some("the final verification pass was stopped early".to_owned()),
            Err(error) => {
                Some(format!("the target failed during the final verification pass, which ended early: {error}"))
            }
        };
        (self.progress, warning)
    }

    fn read_all<T: Target, C: Clock>(
        &mut self,
        target: &mut T,
        clock: &C,
        stop: &Stop,
        report: &mut dyn FnMut(&Checker, &mut FinalPassProgress),
    ) -> io::Result<bool> {
        let mut reads: Vec<Option<PendingRead>> = (0..DEPTH).map(|_| None).collect();
        let mut ended = false;
        loop {
            let mut staged = false;
            while !ended && !stop.is_requested() {
                let Some(slot) = reads.iter().position(Option::is_none) else { break };
                let Some((range, checkable)) = self.peek() else {
                    ended = true;
                    break;
                };
                let bytes = range.sectors * SECTOR_BYTES;
                let Some(mut buffer) = self.pool.take(bytes) else { break };
                self.advance(range);
                poison(self.pool.arena().bytes_mut(&mut buffer, bytes), self.checker.run());
                let read = reads[slot].insert(PendingRead { range, checkable, buffer, issued: clock.now() });
                target.stage(Io {
                    slot: slot as u32,
                    key: range.sector,
                    target: range.target,
                    op: Op::Read,
                    flags: Flags::default(),
                    offset: range.sector * SECTOR_BYTES,
                    length: bytes,
                    buffer: Some(&read.buffer),
                });
                staged = true;
            }
            if staged {
                target.submit()?;
            }
            let mut found = false;
            while let Some(completion) = target.reap() {
                found = true;
                if let Some(read) = reads.get_mut(completion.slot as usize).and_then(Option::take) {
                    self.check(&read, completion.result, clock.now());
                    self.pool.give(read.buffer);
                }
            }
            report(self.checker, &mut self.progress);
            if reads.iter().all(Option::is_none) && (ended || stop.is_requested()) {
                return Ok(ended);
            }
            if stop.is_abort() {
                return Ok(false);
            }
            if !found {
                target.wait(MAX_WAIT)?;
            }
        }
    }

    fn check(&mut self, read: &PendingRead, result: i64, now: Nanos) {
        let PendingRead { range, checkable, buffer, issued } = read;
        let sectors = u64::try_from(result).unwrap_or(0).min(range.sectors * SECTOR_BYTES) / SECTOR_BYTES;
        let data = self.pool.arena().bytes(buffer, sectors * SECTOR_BYTES);
        let read = SectorRange { sectors, ..*range };
        self.progress.checked += self.checker.check_final_read(read, data, Span { issued: *issued, completed: now });
        if sectors < range.sectors {
            // The checkable sectors among the missing ones are known only if all are missing.
            let missing = if sectors == 0 { *checkable } else { (range.sectors - sectors).min(*checkable) };
            self.progress.errors += missing;
            let at = (range.target, range.sector + sectors);
            let mut finding = finding(FindingKind::Unreadable, Pass::Final, at, None, &Found::Unread);
            finding.sectors = range.sectors - sectors;
            finding.at_ns = now.0;
            finding.errno = (result < 0).then_some(-result as i32);
            self.checker.findings.add(finding);
        }
    }

    /// The next range to read, and how many of its sectors can be checked.
    fn peek(&mut self) -> Option<(SectorRange, u64)> {
        if self.at == self.blocks.len() {
            let after = self.blocks.last().map(|(key, _)| *key);
            self.blocks = self.checker.expected_state.next_blocks(after, BATCH);
            self.at = 0;
        }
        let most = MAX_SECTORS.min(self.pool.largest() / SECTOR_BYTES);
        let (first_key, first_bits) = *self.blocks.get(self.at)?;
        let (target, start) = block_start(first_key);
        let mut range = self.aligned(target, start, first_bits);
        let mut checkable = u64::from(first_bits.count_ones());
        for &(key, bits) in &self.blocks[self.at + 1..] {
            let (target, start) = block_start(key);
            let next = self.aligned(target, start, bits);
            let end = next.sector + next.sectors;
            if target != range.target || next.sector > range.sector + range.sectors || end - range.sector > most {
                break;
            }
            range.sectors = range.sectors.max(end - range.sector);
            checkable += u64::from(bits.count_ones());
        }
        Some((range, checkable))
    }

    /// Advances beyond the blocks of a read.
    fn advance(&mut self, range: SectorRange) {
        let end = range.sector + range.sectors;
        let is_inside = |key: u64| {
            let (target, start) = block_start(key);
            target == range.target && start < end
        };
        while self.blocks.get(self.at).is_some_and(|(key, _)| is_inside(*key)) {
            self.at += 1;
        }
    }

    /// These sectors of a block, widened to the target's logical blocks.
    fn aligned(&self, target: u16, start: u64, bits: u8) -> SectorRange {
        let geometry = self.targets[usize::from(target)];
        let first = start + u64::from(bits.trailing_zeros());
        let end = start + BLOCK_SECTORS - u64::from(bits.leading_zeros());
        let unit = geometry.block_sectors;
        let sector = first / unit * unit;
        SectorRange { target, sector, sectors: (end.div_ceil(unit) * unit).min(geometry.sectors) - sector }
    }
}
