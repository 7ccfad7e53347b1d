//! Checks what was read and enters what was written, request by request in the order in which they come back.
//!
//! Where requests that overlap may be in flight together, a read can bring what a write wrote that is not through yet. Such
//! a suspect is kept, and its row with it, until that write, or all that was issued before the read completed, is through.

use std::collections::{HashMap, VecDeque};

use iosonar_trace::run_info::{FindingKind, Pass};
use iosonar_trace::{IoResult, Nanos, Op, Outcome, SECTOR_BYTES};

use super::block::{Change, Content, Span, Verdict};
use super::findings::{Findings, finding, kind_of};
use super::header::{Found, inspect};
use crate::config::options::Options;
use crate::device::discarded::Discarded;
use crate::pipeline::buffers::Arena;
use crate::pipeline::io::{CompletedIo, Reread};
use crate::verify::expected_state::{ExpectedState, Place, WriteEffect, blocks, start_of};
use crate::verify::watermark::CompletionWatermark;

/// Rows that are held back at most, and suspects. Beyond that they are let go, undecided.
const MOST_HELD: usize = 65_536;

/// How much was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sectors of the load's reads whose content was known.
    pub read: u64,
    /// Sectors that were read at once after their write.
    pub reread: u64,
    /// Sectors that may have been torn by an overlap, so that nothing can be said.
    pub undecided: u64,
}

/// The completion log's part of the verification.
#[derive(Debug)]
pub struct Checker {
    run: u64,
    /// What the sectors must hold.
    pub ledger: ExpectedState,
    through: CompletionWatermark,
    /// Whether requests that overlap may be in flight together.
    may_overlap: bool,
    /// Of each target, what a discard leaves. A target that is not listed promises nothing.
    discarded: Vec<Discarded>,
    suspects: VecDeque<Suspect>,
    /// How many suspects there are in each block that has any.
    suspected: HashMap<u64, u32>,
    held: VecDeque<Held>,
    /// Rows that were let go.
    let_go: u64,
    highest: u64,
    /// What was wrong.
    pub findings: Findings,
    /// What was checked.
    pub counts: Counts,
}

/// A sector that is wrong unless a request explains it that is not through yet.
#[derive(Debug)]
struct Suspect {
    row: u64,
    key: u64,
    sector: u32,
    found: Found,
    expected: Content,
    read: Span,
    pass: Pass,
    /// When the requests up to this sequence number are through, nothing can explain it any more.
    fence: u64,
}

#[derive(Debug)]
struct Held {
    record: IoResult,
    suspects: u32,
}

/// A read to be checked.
struct Look<'a> {
    place: Place,
    data: &'a [u8],
    span: Span,
    pass: Pass,
    request: u64,
    fence: u64,
}

impl Checker {
    /// For the run of that number, as the options say.
    pub fn of(options: &Options, run: u64) -> Self {
        Self::new(run, options.verification.verify_memory, options.overlaps.may_overlap())
    }

    /// For the run of that number, in so many bytes of memory.
    pub fn new(run: u64, limit_bytes: u64, may_overlap: bool) -> Self {
        Self {
            run,
            ledger: ExpectedState::new(limit_bytes),
            through: CompletionWatermark::default(),
            may_overlap,
            discarded: Vec::new(),
            suspects: VecDeque::new(),
            suspected: HashMap::new(),
            held: VecDeque::new(),
            let_go: 0,
            highest: 0,
            findings: Findings::default(),
            counts: Counts::default(),
        }
    }

    /// The same where discards leave that on each of the targets.
    #[must_use]
    pub fn with_discards(mut self, discarded: Vec<Discarded>) -> Self {
        self.discarded = discarded;
        self
    }

    /// The run's number.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Takes a request that is through; what it read lies in its buffer. Its row comes back from [`Checker::decided`].
    pub fn take(&mut self, done: &CompletedIo, arena: &Arena) {
        let record = &done.record;
        let low = if self.may_overlap {
            self.through.add(done.sequence_number);
            self.through.low()
        } else {
            // Whatever could disturb was not in flight with it.
            u64::MAX
        };
        self.held.push_back(Held { record: *record, suspects: 0 });
        self.enter(done, low);
        self.look_at(done, arena);
        self.ledger.settle(low);
        while self.suspects.front().is_some_and(|suspect| suspect.fence <= low) {
            self.convict();
        }
        while self.held.len() > MOST_HELD && self.held.front().is_some_and(|held| held.suspects > 0) {
            self.acquit_first();
        }
    }

    /// The next row of which everything is known.
    pub fn decided(&mut self) -> Option<IoResult> {
        if self.held.front()?.suspects > 0 {
            return None;
        }
        self.let_go += 1;
        self.held.pop_front().map(|held| held.record)
    }

    /// No request comes any more: what is not through will never explain anything.
    pub fn finish(&mut self) {
        while !self.suspects.is_empty() {
            self.convict();
        }
        self.ledger.settle(u64::MAX);
    }

    /// Judges what was read at the end. Returns how many sectors could be judged.
    pub fn look_at_the_end(&mut self, place: Place, data: &[u8], span: Span) -> u64 {
        let before = self.counts;
        self.look(&Look { place, data, span, pass: Pass::Final, request: 0, fence: 0 });
        let checked = self.counts.read - before.read;
        self.counts.read = before.read;
        checked
    }

    fn enter(&mut self, done: &CompletedIo, low: u64) {
        let discarded = self.discarded.get(usize::from(done.target)).copied().unwrap_or_default();
        for deed in deeds(done, discarded) {
            self.highest = self.highest.max(done.sequence_number);
            if !self.suspects.is_empty() {
                self.explain(&deed);
            }
            self.ledger.enter(&deed, low);
        }
    }

    fn look_at(&mut self, done: &CompletedIo, arena: &Arena) {
        let (record, Some(buffer)) = (&done.record, &done.buffer) else { return };
        let (span, pass, bytes) = match (&done.reread, record.op, record.issued, record.completed) {
            (Some(reread), ..) => {
                let Ok(bytes) = u64::try_from(reread.result) else { return self.note_unreadable(done, reread) };
                // What was not written is not asked after.
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
        let place = Place { target: done.target, sector: record.sector.0, sectors };
        self.look(&Look { place, data, span, pass, request: record.request, fence: done.admitted });
    }

    fn note_unreadable(&mut self, done: &CompletedIo, reread: &Reread) {
        let place = (done.target, done.record.sector.0);
        let mut finding = finding(FindingKind::Unreadable, Pass::Reread, place, None, &Found::Unread);
        finding.sectors = done.record.sectors.0;
        finding.request = Some(done.record.request);
        finding.at_ns = reread.completed.0;
        finding.errno = Some(-reread.result as i32);
        self.findings.add(finding);
    }

    fn look(&mut self, look: &Look<'_>) {
        let mut wrong = Vec::new();
        let Place { target, sector: first, .. } = look.place;
        for (key, sectors) in blocks(look.place) {
            let (_, start) = start_of(key);
            let found = |i: u32| {
                let at = start + u64::from(i);
                let from = ((at - first) * SECTOR_BYTES) as usize;
                inspect(&look.data[from..from + SECTOR_BYTES as usize], self.run, target, at)
            };
            let counts = &mut self.counts;
            let checked = if look.pass == Pass::Reread { &mut counts.reread } else { &mut counts.read };
            self.ledger.judge(key, sectors, found, look.span, |i, found, verdict| {
                let at = (target, start + u64::from(i));
                match (found, verdict) {
                    (Found::Own(header), _) if (header.target, header.sector) != at => {
                        *checked += 1;
                        let expected = match verdict {
                            Some(Verdict::Wrong(expected)) => expected,
                            _ => Content::BEFORE,
                        };
                        wrong.push((key, i, found, expected));
                    }
                    (Found::Unread, _) => {
                        *checked += 1;
                        wrong.push((key, i, found, Content::BEFORE));
                    }
                    (_, Some(Verdict::Right)) => *checked += 1,
                    (_, Some(Verdict::Undecided)) => counts.undecided += 1,
                    (_, Some(Verdict::Unknown) | None) => {}
                    (_, Some(Verdict::Wrong(expected))) => {
                        *checked += 1;
                        wrong.push((key, i, found, expected));
                    }
                }
            });
        }
        for (key, sector, found, expected) in wrong {
            if self.may_be_explained(key, sector, &found, look.fence) {
                self.suspect(look, key, sector, found, expected);
            } else {
                let is_torn = torn(look, self.run, expected.sequence_number(self.highest));
                self.report((key, sector), found, expected, look.pass, is_torn, look.span.completed, look.request);
                if look.pass != Pass::Final {
                    self.held.back_mut().expect("its row was put there").record.outcome = Outcome::Corrupt;
                }
            }
        }
    }

    /// Whether a request that is not through may be behind what was read.
    fn may_be_explained(&self, key: u64, sector: u32, found: &Found, fence: u64) -> bool {
        let (target, start) = start_of(key);
        let belongs = match found {
            Found::Own(header) => (header.target, header.sector) == (target, start + u64::from(sector)),
            Found::Unread => false,
            Found::Damaged(_) | Found::Zeros | Found::Foreign => true,
        };
        belongs && self.may_overlap && self.through.low() < fence
    }

    fn suspect(&mut self, look: &Look<'_>, key: u64, sector: u32, found: Found, expected: Content) {
        if self.suspects.len() >= MOST_HELD {
            self.counts.undecided += 1;
            return;
        }
        let row = self.let_go + self.held.len() as u64 - 1;
        self.held.back_mut().expect("its row was put there").suspects += 1;
        *self.suspected.entry(key).or_default() += 1;
        let (read, pass, fence) = (look.span, look.pass, look.fence);
        self.suspects.push_back(Suspect { row, key, sector, found, expected, read, pass, fence });
    }

    /// Lets those suspects go that this request explains.
    fn explain(&mut self, deed: &WriteEffect) {
        for (key, sectors) in blocks(deed.place) {
            if !self.suspected.contains_key(&key) {
                continue;
            }
            let change =
                Change { sectors, content: deed.content, is_done: deed.is_done, span: deed.span, fence: deed.fence };
            let mut at = 0;
            while at < self.suspects.len() {
                let suspect = &self.suspects[at];
                let is_here = suspect.key == key && sectors & (1 << suspect.sector) != 0;
                match is_here.then(|| self.ledger.judge_with(key, suspect.sector, &suspect.found, suspect.read, change))
                {
                    Some(verdict @ (Verdict::Right | Verdict::Unknown | Verdict::Undecided)) => {
                        self.counts.undecided += u64::from(verdict == Verdict::Undecided);
                        let suspect = self.suspects.remove(at).expect("it was just seen");
                        self.release(&suspect);
                    }
                    _ => at += 1,
                }
            }
        }
    }

    /// The oldest suspect was not explained.
    fn convict(&mut self) {
        let Some(suspect) = self.suspects.pop_front() else { return };
        self.release(&suspect);
        let record = &mut self.held[(suspect.row - self.let_go) as usize].record;
        record.outcome = Outcome::Corrupt;
        let request = record.request;
        let Suspect { key, sector, found, expected, pass, read, .. } = suspect;
        self.report((key, sector), found, expected, pass, false, read.completed, request);
    }

    /// The oldest row has waited too long.
    fn acquit_first(&mut self) {
        while let Some(suspect) = self.suspects.pop_front() {
            self.release(&suspect);
            self.counts.undecided += 1;
            if self.held[0].suspects == 0 {
                return;
            }
        }
    }

    fn release(&mut self, suspect: &Suspect) {
        self.held[(suspect.row - self.let_go) as usize].suspects -= 1;
        let left = self.suspected.get_mut(&suspect.key).expect("it was counted");
        *left -= 1;
        if *left == 0 {
            self.suspected.remove(&suspect.key);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all that a finding says")]
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
        let (target, start) = start_of(key);
        let place = (target, start + u64::from(sector));
        let sequence_number = expected.sequence_number(self.highest);
        let kind = kind_of(&found, place, sequence_number, expected != Content::BEFORE).torn_if(is_torn);
        let mut finding = finding(kind, pass, place, sequence_number, &found);
        finding.expected_zeros = expected == Content::ZEROS;
        finding.request = (pass != Pass::Final).then_some(request);
        finding.at_ns = at.0;
        self.findings.add(finding);
    }
}

/// Whether another sector of the same read holds what was expected of this one.
fn torn(look: &Look<'_>, run: u64, expected: Option<u64>) -> bool {
    let Place { target, sector, .. } = look.place;
    let mut sectors = look.data.chunks_exact(SECTOR_BYTES as usize).zip(sector..);
    expected.is_some_and(|expected| {
        sectors.any(|(bytes, at)| match inspect(bytes, run, target, at) {
            Found::Own(header) => (header.sequence_number, header.target, header.sector) == (expected, target, at),
            _ => false,
        })
    })
}

/// What a request did to its sectors: the first of them were done, one was perhaps cut in two, the rest not done. Of a
/// discard, the units at both ends that it covers in part may hold anything.
fn deeds(done: &CompletedIo, discarded: Discarded) -> impl Iterator<Item = WriteEffect> {
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
    let (whole, begun) = (bytes / SECTOR_BYTES, bytes.div_ceil(SECTOR_BYTES));
    let (target, sector, fence) = (done.target, record.sector.0, done.admitted);
    let (from, to) = zeros.map_or((0, all), |(from, to)| (from - sector, to - sector));
    let parts = [
        (0, from, Content::ANYTHING, true),
        (from, whole.min(to), content, true),
        (whole, begun, Content::ANYTHING, true),
        (begun.max(from), to, content, false),
        (to, all, Content::ANYTHING, true),
    ];
    let completed = record.completed.unwrap_or(Nanos::MAX);
    let deeds =
        parts.into_iter().filter(|(from, to, ..)| from < to).map(move |(from, to, content, is_done)| WriteEffect {
            place: Place { target, sector: sector + from, sectors: to - from },
            content,
            is_done,
            span: Span { issued: issued.unwrap_or(Nanos::ZERO), completed },
            fence,
        });
    deeds.filter(move |_| issued.is_some())
}
