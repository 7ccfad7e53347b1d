//! What the eight sectors of one block (4 KiB) may hold, as far as the run's completed requests tell.
//!
//! A block has a *base*: for each sector what it holds for certain. Where that is not certain, because writes overlapped in
//! time, or failed, or because a read that was issued before a write completed may still come back, it has *changes* as
//! well, oldest first:
//!
//! ```text
//!  time ──▶     w1 |======|        w3 |=====|
//!                     w2 |====|                  r |====|      r may hold w3 alone
//!                                            r |====|          r may hold w1, w2 or w3
//!                                  r |====|                    so may this one
//! ```
//!
//! A write has *displaced* another if it was issued after the other completed, and completed itself before the read was
//! issued. Whatever is not displaced may be read. [`settle`] folds changes into the base as soon as no read can come any
//! more that may see anything older.

use iosonar_trace::Nanos;

use super::header::Found;

/// Sectors of a block.
pub const BLOCK_SECTORS: u64 = 8;
/// More changes of one block than this become one that allows anything: only storage that does not answer lets so many
/// gather.
const MOST_CHANGES: usize = 64;

/// What a sector may hold, in four bytes: the lower 32 bits of a sequence number, enough to tell two apart, or one of
/// the constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content(u32);

impl Content {
    /// What was there before the run.
    pub const BEFORE: Self = Self(0);
    /// Whatever: it was written in part, or discarded where that promises nothing.
    pub const ANYTHING: Self = Self(u32::MAX);
    /// Zeros.
    pub const ZEROS: Self = Self(u32::MAX - 1);
    /// Nothing: the changes alone say what it may hold.
    pub const DISPLACED: Self = Self(u32::MAX - 2);

    /// What the request of that sequence number wrote.
    pub fn of(sequence_number: u64) -> Self {
        debug_assert!(is_sequence_number(sequence_number));
        Self(sequence_number as u32)
    }

    /// The sequence number, if it is one, given the highest that there is.
    pub fn sequence_number(self, highest: u64) -> Option<u64> {
        if !is_sequence_number(u64::from(self.0)) {
            return None;
        }
        let full = highest >> 32 << 32 | u64::from(self.0);
        Some(if full > highest { full - (1 << 32) } else { full })
    }

    /// Whether a sector that was found like this holds it.
    fn is(self, found: &Found) -> bool {
        match (self, found) {
            (_, Found::Unread) | (Self::DISPLACED, _) => false,
            (Self::ANYTHING, _) => true,
            (Self::BEFORE, found) => matches!(found, Found::Foreign | Found::Zeros),
            (Self::ZEROS, found) => *found == Found::Zeros,
            (Self(sequence_number), Found::Own(header)) => header.sequence_number as u32 == sequence_number,
            _ => false,
        }
    }

    fn is_written(self) -> bool {
        is_sequence_number(u64::from(self.0))
    }
}

/// Whether a request can have that sequence number. A few out of each 2³² cannot: they stand for everything else.
pub fn is_sequence_number(number: u64) -> bool {
    let low = number as u32;
    low != 0 && low < u32::MAX - 2
}

/// When a request was with the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it was issued.
    pub issued: Nanos,
    /// When it completed; [`Nanos::MAX`] if it never did.
    pub completed: Nanos,
}

impl Span {
    fn overlaps(&self, other: &Self) -> bool {
        self.issued <= other.completed && other.issued <= self.completed
    }
}

/// What a request did, or may have done, to some sectors of a block.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// One bit for each sector that it touched, the lowest first.
    pub sectors: u8,
    /// What they hold if it was done.
    pub content: Content,
    /// Whether it was done. Otherwise they may hold that or what was there before.
    pub is_done: bool,
    /// When it was with the target.
    pub span: Span,
    /// When all requests up to this sequence number are through, no read comes any more that was issued before
    /// this change completed.
    pub fence: u64,
}

/// What is to be said about a sector that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds what it must.
    Right,
    /// Nothing was known about it.
    Unknown,
    /// It may be torn, because it was read while it was written, or written by two at once.
    Undecided,
    /// It holds what it must not. What it should have held instead.
    Wrong(Content),
}

/// Judges a sector, numbered within its block.
pub fn judge(base: Content, changes: &[Change], sector: u32, found: &Found, read: Span) -> Verdict {
    let of_sector = || changes.iter().filter(move |c| c.sectors & (1 << sector) != 0);
    // The last that was issued among those that were done before the read began: it displaces all that completed before.
    let last = of_sector().filter(|c| c.is_done && c.span.completed < read.issued).max_by_key(|c| c.span.issued);
    let may_be_seen =
        |c: &&Change| c.span.issued <= read.completed && last.is_none_or(|last| c.span.completed >= last.span.issued);
    let base = if last.is_none() { base } else { Content::DISPLACED };
    let allowed = || std::iter::once(base).chain(of_sector().filter(may_be_seen).map(|c| c.content));
    if allowed().any(|content| content.is(found)) {
        let is_known = !allowed().any(|c| c == Content::ANYTHING)
            && allowed().any(|c| c != Content::BEFORE && c != Content::DISPLACED);
        return if is_known { Verdict::Right } else { Verdict::Unknown };
    }
    let seen = || of_sector().filter(may_be_seen);
    let during_read = seen().any(|c| c.span.overlaps(&read));
    let at_once = seen().enumerate().any(|(i, a)| seen().skip(i + 1).any(|b| a.span.overlaps(&b.span)));
    // A mixture of two writes is damaged. It has no header at all only if one of the two had none.
    let may_be_torn = match found {
        Found::Damaged(_) => during_read || at_once,
        Found::Foreign | Found::Zeros => {
            (during_read || at_once) && allowed().any(|c| !c.is_written() && c != Content::DISPLACED)
        }
        Found::Own(_) | Found::Unread => false,
    };
    if may_be_torn {
        return Verdict::Undecided;
    }
    // What was done last is what a reader expects.
    let expected = of_sector().filter(|c| c.is_done).filter(may_be_seen).max_by_key(|c| c.span.issued);
    let any = || of_sector().filter(may_be_seen).map(|c| c.content).next();
    let before = (base != Content::DISPLACED).then_some(base);
    Verdict::Wrong(expected.map(|c| c.content).or(before).or_else(any).unwrap_or(base))
}

/// Adds a change, behind those that completed before it.
pub fn add(changes: &mut Vec<Change>, change: Change) {
    if changes.len() >= MOST_CHANGES {
        let all = changes.drain(..).reduce(|a, b| Change {
            sectors: a.sectors | b.sectors,
            content: Content::ANYTHING,
            is_done: false,
            span: Span { issued: a.span.issued.min(b.span.issued), completed: a.span.completed.max(b.span.completed) },
            fence: a.fence.max(b.fence),
        });
        changes.extend(all);
    }
    changes.push(change);
}

/// Folds into the base what is certain when all requests up to `low` are through.
pub fn settle(base: &mut [Content; BLOCK_SECTORS as usize], changes: &mut Vec<Change>, low: u64) {
    for sector in 0..BLOCK_SECTORS as u32 {
        let bit = 1 << sector;
        let of_sector = |c: &&Change| c.sectors & bit != 0;
        let firm = changes.iter().filter(of_sector).filter(|c| c.is_done && c.fence <= low);
        let Some(&last) = firm.max_by_key(|c| c.span.issued) else { continue };
        // Whatever completed before the last was issued cannot be seen any more.
        for change in changes.iter_mut().filter(|c| c.span.completed < last.span.issued) {
            change.sectors &= !bit;
        }
        let mut others = changes.iter().filter(of_sector).filter(|c| c.span != last.span || c.content != last.content);
        // Those after it may stay beside a base; one that was under way with it needs both to be kept.
        if others.all(|c| c.span.issued > last.span.completed) {
            base[sector as usize] = last.content;
            for change in changes.iter_mut().filter(|c| c.span == last.span && c.content == last.content) {
                change.sectors &= !bit;
            }
        } else {
            base[sector as usize] = Content::DISPLACED;
        }
    }
    changes.retain(|c| c.sectors != 0);
}
