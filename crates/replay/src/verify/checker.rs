//! Checks read data and records the effects of writes, request by request in the order of completion.
//!
//! If overlapping requests can be in flight together, a read can return data of a write that has not completed yet. Such a
//! mismatch is kept pending, and its row too, until that write has completed, or all requests issued before the end of the
//! read.

use std::collections::{HashMap, VecDeque};

use iosonar_device::discarded::Discarded;
use iosonar_pacing::buffers::Arena;
use iosonar_trace::run_info::{FindingKind, Pass};
use iosonar_trace::{IoResult, Nanos, Op, Outcome, SECTOR_BYTES};

use super::block::{Content, Judgement, Span};
use super::findings::{Findings, finding, kind_of};
use super::header::{Found, inspect};
use crate::io::{CompletedIo, Reread};
use crate::verify::expected_state::{ExpectedState, SectorRange, WriteEffect, block_start, blocks};
use crate::verify::watermark::CompletionWatermark;

/// Maximum number of pending rows and of pending mismatches. Beyond it, the oldest are counted as undecided.
const MAX_PENDING: usize = 65_536;

/// Numbers of sectors checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sectors of the load's reads with known content.
    pub read: u64,
    /// Sectors of writes read back immediately.
    pub reread: u64,
    /// Sectors that overlapping requests may have torn, so that no judgement is possible.
    pub undecided: u64,
}

/// The checks in the completion log.
#[derive(Debug)]
pub struct Checker {
    run: u64,
    /// The expected content of sectors.
    pub expected_state: ExpectedState,
    completed: CompletionWatermark,
    /// Whether overlapping requests can be in flight together.
    may_overlap: bool,
    /// What a discard guarantees on each target; nothing on targets beyond the list.
    discarded: Vec<Discarded>,
    pending: VecDeque<PendingMismatch>,
    /// Number of pending mismatches by block.
    pending_by_block: HashMap<u64, u32>,
    rows: VecDeque<PendingRow>,
    /// Rows returned so far.
    returned_rows: u64,
    highest: u64,
    /// Mismatches and unreadable sectors.
    pub findings: Findings,
    /// What was checked.
    pub counts: Counts,
}

/// A sector with wrong content, unless a request explains it that has not completed yet.
#[derive(Debug)]
struct PendingMismatch {
    row: u64,
    key: u64,
    sector: u32,
    found: Found,
    expected: Content,
    read: Span,
    pass: Pass,
    /// When all requests up to this sequence number have completed, the mismatch is final.
    fence: u64,
}

#[derive(Debug)]
struct PendingRow {
    record: IoResult,
    pending: u32,
}

/// A read to check.
struct ReadCheck<'a> {
    range: SectorRange,
    data: &'a [u8],
    span: Span,
    pass: Pass,
    request: u64,
    fence: u64,
}

impl Checker {
    /// For a run with this random number, within a memory limit.
    pub fn new(run: u64, limit_bytes: u64, may_overlap: bool) -> Self {
        Self {
            run,
            expected_state: ExpectedState::new(limit_bytes),
            completed: CompletionWatermark::default(),
            may_overlap,
            discarded: Vec::new(),
            pending: VecDeque::new(),
            pending_by_block: HashMap::new(),
            rows: VecDeque::new(),
            returned_rows: 0,
            highest: 0,
            findings: Findings::default(),
            counts: Counts::default(),
        }
    }

    /// Sets what discards guarantee on each target.
    #[must_use]
    pub fn with_discards(mut self, discarded: Vec<Discarded>) -> Self {
        self.discarded = discarded;
        self
    }

    /// The random number that marks all blocks of this run.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Checks a completed request, whose buffer contains the data read. [`Checker::decided`] returns its row.
    pub fn add(&mut self, done: &CompletedIo, arena: &Arena) {
        let record = &done.record;
        let low = if self.may_overlap {
            self.completed.add(done.sequence_number);
            self.completed.low()
        } else {
            // No conflicting request was in flight at the same time.
            u64::MAX
        };
        self.rows.push_back(PendingRow { record: *record, pending: 0 });
        self.apply_effects(done, low);
        self.check_read(done, arena);
        self.expected_state.settle(low);
        while self.pending.front().is_some_and(|mismatch| mismatch.fence <= low) {
            self.report_oldest();
        }
        while self.rows.len() > MAX_PENDING && self.rows.front().is_some_and(|row| row.pending > 0) {
            self.give_up_oldest_row();
        }
    }

    /// The next row whose checks are final.
    pub fn decided(&mut self) -> Option<IoResult> {
        if self.rows.front()?.pending > 0 {
            return None;
        }
        self.returned_rows += 1;
        self.rows.pop_front().map(|row| row.record)
    }

    /// Makes all pending mismatches final, when no more requests will complete.
    pub fn finish(&mut self) {
        while !self.pending.is_empty() {
            self.report_oldest();
        }
        self.expected_state.settle(u64::MAX);
    }

    /// Checks a read of the final pass. Returns the number of sectors checked.
    pub fn check_final_read(&mut self, range: SectorRange, data: &[u8], span: Span) -> u64 {
        let before = self.counts;
        self.check(&ReadCheck { range, data, span, pass: Pass::Final, request: 0, fence: 0 });
        let checked = self.counts.read - before.read;
        self.counts.read = before.read;
        checked
    }

    fn apply_effects(&mut self, done: &CompletedIo, low: u64) {
        let discarded = self.discarded.get(usize::from(done.target)).copied().unwrap_or_default();
        for effect in effects(done, discarded) {
            self.highest = self.highest.max(done.sequence_number);
            if !self.pending.is_empty() {
                self.resolve_explained(&effect);
            }
            self.expected_state.apply(&effect, low);
        }
    }

    fn check_read(&mut self, done: &CompletedIo, arena: &Arena) {
        let (record, Some(buffer)) = (&done.record, &done.buffer) else { return };
        let (span, pass, bytes) = match (&done.reread, record.op, record.issued, record.completed) {
            (Some(reread), ..) => {
                let Ok(bytes) = u64::try_from(reread.result) else { return self.report_unreadable(done, reread) };
                // Sectors that were not written are not checked.
                let bytes = bytes.min(record.bytes_done);
                (Span { issued: reread.issued, completed: reread.completed }, Pass::Reread, bytes)
            }
            (None, Op::Read, Some(issued), Some(completed)) => {
                (Span { issued, completed }, Pass::Read, record.bytes_done)
            }
            _ => return,
        };
        let sectors = bytes.min(record.sectors.bytes()) / SECTOR_BYTES;
        let data = arena.bytes(buffer, sectors * SECTOR_BYTES);
        let range = SectorRange { target: done.target, sector: record.sector.0, sectors };
        self.check(&ReadCheck { range, data, span, pass, request: record.request, fence: done.admitted });
    }

    fn report_unreadable(&mut self, done: &CompletedIo, reread: &Reread) {
        let position = (done.target, done.record.sector.0);
        let mut finding = finding(FindingKind::Unreadable, Pass::Reread, position, None, &Found::Unread);
        finding.sectors = done.record.sectors.0;
        finding.request = Some(done.record.request);
        finding.at_ns = reread.completed.0;
        finding.errno = Some(-reread.result as i32);
        self.findings.add(finding);
    }

    fn check(&mut self, read: &ReadCheck<'_>) {
        let mut wrong = Vec::new();
        let SectorRange { target, sector: first, .. } = read.range;
        for (key, sectors) in blocks(read.range) {
            let (_, start) = block_start(key);
            let found = |i: u32| {
                let at = start + u64::from(i);
                let from = ((at - first) * SECTOR_BYTES) as usize;
                inspect(&read.data[from..from + SECTOR_BYTES as usize], self.run, target, at)
            };
            let counts = &mut self.counts;
            let checked = if read.pass == Pass::Reread { &mut counts.reread } else { &mut counts.read };
            self.expected_state.judge(key, sectors, found, read.span, |i, found, judgement| {
                let at = (target, start + u64::from(i));
                match (found, judgement) {
                    (Found::Written(header), _) if (header.target, header.sector) != at => {
                        *checked += 1;
                        let expected = match judgement {
                            Some(Judgement::Wrong(expected)) => expected,
                            _ => Content::INITIAL,
                        };
                        wrong.push((key, i, found, expected));
                    }
                    (Found::Unread, _) => {
                        *checked += 1;
                        wrong.push((key, i, found, Content::INITIAL));
                    }
                    (_, Some(Judgement::Correct)) => *checked += 1,
                    (_, Some(Judgement::Undecided)) => counts.undecided += 1,
                    (_, Some(Judgement::Unknown) | None) => {}
                    (_, Some(Judgement::Wrong(expected))) => {
                        *checked += 1;
                        wrong.push((key, i, found, expected));
                    }
                }
            });
        }
        for (key, sector, found, expected) in wrong {
            if self.may_be_explained(key, sector, &found, read.fence) {
                self.add_pending(read, key, sector, found, expected);
            } else {
                let is_torn = is_torn(read, self.run, expected.sequence_number(self.highest));
                self.report((key, sector), found, expected, read.pass, is_torn, read.span.completed, read.request);
                if read.pass != Pass::Final {
                    self.rows.back_mut().expect("its row was added last").record.outcome = Outcome::Corrupt;
                }
            }
        }
    }

    /// Whether a request that has not completed may have written the data found.
    fn may_be_explained(&self, key: u64, sector: u32, found: &Found, fence: u64) -> bool {
        let (target, start) = block_start(key);
        let is_in_place = match found {
            Found::Written(header) => (header.target, header.sector) == (target, start + u64::from(sector)),
            Found::Unread => false,
            Found::Damaged(_) | Found::Zeros | Found::Foreign => true,
        };
        is_in_place && self.may_overlap && self.completed.low() < fence
    }

    fn add_pending(&mut self, read: &ReadCheck<'_>, key: u64, sector: u32, found: Found, expected: Content) {
        if self.pending.len() >= MAX_PENDING {
            self.counts.undecided += 1;
            return;
        }
        let row = self.returned_rows + self.rows.len() as u64 - 1;
        self.rows.back_mut().expect("its row was added last").pending += 1;
        *self.pending_by_block.entry(key).or_default() += 1;
        let (read, pass, fence) = (read.span, read.pass, read.fence);
        self.pending.push_back(PendingMismatch { row, key, sector, found, expected, read, pass, fence });
    }

    /// Resolves pending mismatches that this effect explains.
    fn resolve_explained(&mut self, effect: &WriteEffect) {
        for (key, sectors) in blocks(effect.range) {
            if !self.pending_by_block.contains_key(&key) {
                continue;
            }
            let change = effect.change(sectors);
            let mut at = 0;
            while at < self.pending.len() {
                let mismatch = &self.pending[at];
                let is_here = mismatch.key == key && sectors & (1 << mismatch.sector) != 0;
                match is_here.then(|| {
                    self.expected_state.judge_with(key, mismatch.sector, &mismatch.found, mismatch.read, change)
                }) {
                    Some(judgement @ (Judgement::Correct | Judgement::Unknown | Judgement::Undecided)) => {
                        self.counts.undecided += u64::from(judgement == Judgement::Undecided);
                        let mismatch = self.pending.remove(at).expect("the index is in range");
                        self.resolve(&mismatch);
                    }
                    _ => at += 1,
                }
            }
        }
    }

    /// Reports the oldest pending mismatch.
    fn report_oldest(&mut self) {
        let Some(mismatch) = self.pending.pop_front() else { return };
        self.resolve(&mismatch);
        let record = &mut self.rows[(mismatch.row - self.returned_rows) as usize].record;
        record.outcome = Outcome::Corrupt;
        let request = record.request;
        let PendingMismatch { key, sector, found, expected, pass, read, .. } = mismatch;
        self.report((key, sector), found, expected, pass, false, read.completed, request);
    }

    /// Counts the mismatches of the oldest row as undecided.
    fn give_up_oldest_row(&mut self) {
        while let Some(mismatch) = self.pending.pop_front() {
            self.resolve(&mismatch);
            self.counts.undecided += 1;
            if self.rows[0].pending == 0 {
                return;
            }
        }
    }

    fn resolve(&mut self, mismatch: &PendingMismatch) {
        self.rows[(mismatch.row - self.returned_rows) as usize].pending -= 1;
        let left = self.pending_by_block.get_mut(&mismatch.key).expect("it was counted");
        *left -= 1;
        if *left == 0 {
            self.pending_by_block.remove(&mismatch.key);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all parts of a finding")]
    fn report(
        &mut self,
        (key, sector): (u64, u32),
        found: Found,
        expected: Content,
        pass: Pass,
        is_torn: bool,
        at: Nanos,
        request: u64,
    ) {
        let (target, start) = block_start(key);
        let position = (target, start + u64::from(sector));
        let sequence_number = expected.sequence_number(self.highest);
        let kind = kind_of(&found, position, sequence_number, expected != Content::INITIAL).torn_if(is_torn);
        let mut finding = finding(kind, pass, position, sequence_number, &found);
        finding.expected_zeros = expected == Content::ZEROS;
        finding.request = (pass != Pass::Final).then_some(request);
        finding.at_ns = at.0;
        self.findings.add(finding);
    }
}

/// Whether another sector of the same read has the expected content.
fn is_torn(read: &ReadCheck<'_>, run: u64, expected: Option<u64>) -> bool {
    let SectorRange { target, sector, .. } = read.range;
    let mut sectors = read.data.chunks_exact(SECTOR_BYTES as usize).zip(sector..);
    expected.is_some_and(|expected| {
        sectors.any(|(bytes, at)| match inspect(bytes, run, target, at) {
            Found::Written(header) => (header.sequence_number, header.target, header.sector) == (expected, target, at),
            _ => false,
        })
    })
}

/// The effects of a request. Its first sectors are certain, one may be partly written, the rest uncertain. Units that a
/// discard covers only partly, at its ends, can have any content.
fn effects(done: &CompletedIo, discarded: Discarded) -> impl Iterator<Item = WriteEffect> {
    let record = &done.record;
    let zeros = discarded.zeros(record.sector.0, record.sectors.0).filter(|_| record.op == Op::Discard);
    let content = match record.op {
        Op::Write => Content::of(done.sequence_number),
        Op::WriteZeroes => Content::ZEROS,
        Op::Discard if zeros.is_some() => Content::ZEROS,
        _ => Content::ANYTHING,
    };
    let issued = record.issued.filter(|_| record.op.modifies());
    let all = record.sectors.0;
    let bytes = match record.outcome {
        Outcome::Ok | Outcome::Short => record.bytes_done.min(all * SECTOR_BYTES),
        _ => 0,
    };
    let (whole, started) = (bytes / SECTOR_BYTES, bytes.div_ceil(SECTOR_BYTES));
    let (target, sector, fence) = (done.target, record.sector.0, done.admitted);
    let (from, to) = zeros.map_or((0, all), |(from, to)| (from - sector, to - sector));
    let parts = [
        (0, from, Content::ANYTHING, true),
        (from, whole.min(to), content, true),
        (whole, started, Content::ANYTHING, true),
        (started.max(from), to, content, false),
        (to, all, Content::ANYTHING, true),
    ];
    let completed = record.completed.unwrap_or(Nanos::MAX);
    let effects =
        parts.into_iter().filter(|(from, to, ..)| from < to).map(move |(from, to, content, is_done)| WriteEffect {
            range: SectorRange { target, sector: sector + from, sectors: to - from },
            content,
            is_done,
            span: Span { issued: issued.unwrap_or(Nanos::ZERO), completed },
            fence,
        });
    effects.filter(move |_| issued.is_some())
}
