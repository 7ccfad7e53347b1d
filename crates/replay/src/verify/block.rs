//! The allowed contents of the eight sectors of a 4 KiB block, derived from the requests that have completed.
//!
//! A block has a *base*: the certain content of each sector. Where the content is not certain, because writes overlapped
//! in time, or failed, or because a read issued before a write completed may still be in flight, it also has *changes*,
//! oldest first:
//!
//! ```text
//!  time ──▶     w1 |======|        w3 |=====|
//!                     w2 |====|                  r |====|      r may return only w3
//!                                            r |====|          r may return w1, w2 or w3
//!                                  r |====|                    r may return w1, w2 or w3
//! ```
//!
//! A write *displaces* another if it was issued after the other had completed, and itself completed before the read was
//! issued. A read may return anything not displaced. [`settle`] moves changes into the base when no read can return older
//! content any more.

use iosonar_trace::Nanos;

use super::header::Found;

/// Sectors of a block.
pub const BLOCK_SECTORS: u64 = 8;
/// Maximum number of changes of a block. More are merged into a change that allows any content; this many accumulate only
/// if storage does not respond.
const MAX_CHANGES: usize = 64;

/// The content of a sector in four bytes: the lower 32 bits of a sequence number, which suffice to distinguish writes, or
/// one of the constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content(u32);

impl Content {
    /// The content before the run.
    pub const INITIAL: Self = Self(0);
    /// Any content: the sector was partly written, or discarded without a guarantee.
    pub const ANYTHING: Self = Self(u32::MAX);
    /// Zeros.
    pub const ZEROS: Self = Self(u32::MAX - 1);
    /// None: only the changes are allowed.
    pub const DISPLACED: Self = Self(u32::MAX - 2);

    /// The data of the write with this sequence number.
    pub fn of(sequence_number: u64) -> Self {
        debug_assert!(is_sequence_number(sequence_number));
        Self(sequence_number as u32)
    }

    /// The full sequence number, if it is one. `highest` is the highest so far.
    pub fn sequence_number(self, highest: u64) -> Option<u64> {
        if !is_sequence_number(u64::from(self.0)) {
            return None;
        }
        let full = highest >> 32 << 32 | u64::from(self.0);
        Some(if full > highest { full - (1 << 32) } else { full })
    }

    /// Whether the sector found has this content.
    fn is(self, found: &Found) -> bool {
        match (self, found) {
            (_, Found::Unread) | (Self::DISPLACED, _) => false,
            (Self::ANYTHING, _) => true,
            (Self::INITIAL, found) => matches!(found, Found::Foreign | Found::Zeros),
            (Self::ZEROS, found) => *found == Found::Zeros,
            (Self(sequence_number), Found::Written(header)) => header.sequence_number as u32 == sequence_number,
            _ => false,
        }
    }

    fn is_written(self) -> bool {
        is_sequence_number(u64::from(self.0))
    }
}

/// Whether requests use this sequence number. A few of each 2³² are reserved for the constants.
pub fn is_sequence_number(number: u64) -> bool {
    let low = number as u32;
    low != 0 && low < u32::MAX - 2
}

/// The time that a request was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it was issued.
    pub issued: Nanos,
    /// When it completed; [`Nanos::MAX`] if it did not.
    pub completed: Nanos,
}

impl Span {
    fn overlaps(&self, other: &Self) -> bool {
        self.issued <= other.completed && other.issued <= self.completed
    }
}

/// The effect, or possible effect, of a request on sectors of a block.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The sectors, one bit each, lowest first.
    pub sectors: u8,
    /// Their content if the request took effect.
    pub content: Content,
    /// Whether it certainly took effect. Otherwise the earlier content is also allowed.
    pub is_done: bool,
    /// When the request was in flight.
    pub span: Span,
    /// When all requests up to this sequence number have completed, no read can arrive that was issued before this change
    /// completed.
    pub fence: u64,
}

/// The result of checking a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Allowed content.
    Correct,
    /// The expected content is unknown.
    Unknown,
    /// It may be torn legitimately: it was read while it was written, or two writes overlapped in time.
    Undecided,
    /// Content that is not allowed. Contains the expected content.
    Wrong(Content),
}

/// Checks a sector; `sector` is its index in the block.
pub fn judge(base: Content, changes: &[Change], sector: u32, found: &Found, read: Span) -> Judgement {
    let of_sector = || changes.iter().filter(move |c| c.sectors & (1 << sector) != 0);
    // Among the writes completed before the read, the one issued last displaces all that completed before its issue.
    let last = of_sector().filter(|c| c.is_done && c.span.completed < read.issued).max_by_key(|c| c.span.issued);
    let is_visible =
        |c: &&Change| c.span.issued <= read.completed && last.is_none_or(|last| c.span.completed >= last.span.issued);
    let base = if last.is_none() { base } else { Content::DISPLACED };
    let allowed = || std::iter::once(base).chain(of_sector().filter(is_visible).map(|c| c.content));
    if allowed().any(|content| content.is(found)) {
        let is_known = !allowed().any(|c| c == Content::ANYTHING)
            && allowed().any(|c| c != Content::INITIAL && c != Content::DISPLACED);
        return if is_known { Judgement::Correct } else { Judgement::Unknown };
    }
    let visible = || of_sector().filter(is_visible);
    let during_read = visible().any(|c| c.span.overlaps(&read));
    let concurrent_writes = visible().enumerate().any(|(i, a)| visible().skip(i + 1).any(|b| a.span.overlaps(&b.span)));
    // A mixture of two writes has a damaged header, or none if one of the two had none.
    let may_be_torn = match found {
        Found::Damaged(_) => during_read || concurrent_writes,
        Found::Foreign | Found::Zeros => {
            (during_read || concurrent_writes) && allowed().any(|c| !c.is_written() && c != Content::DISPLACED)
        }
        Found::Written(_) | Found::Unread => false,
    };
    if may_be_torn {
        return Judgement::Undecided;
    }
    // Expected is the last certain change.
    let expected = of_sector().filter(|c| c.is_done).filter(is_visible).max_by_key(|c| c.span.issued);
    let any = || of_sector().filter(is_visible).map(|c| c.content).next();
    let before = (base != Content::DISPLACED).then_some(base);
    Judgement::Wrong(expected.map(|c| c.content).or(before).or_else(any).unwrap_or(base))
}

/// Adds a change.
pub fn add(changes: &mut Vec<Change>, change: Change) {
    if changes.len() >= MAX_CHANGES {
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

/// Moves changes into the base that are certain when all requests up to `low` have completed.
pub fn settle(base: &mut [Content; BLOCK_SECTORS as usize], changes: &mut Vec<Change>, low: u64) {
    for sector in 0..BLOCK_SECTORS as u32 {
        let bit = 1 << sector;
        let of_sector = |c: &&Change| c.sectors & bit != 0;
        let certain = changes.iter().filter(of_sector).filter(|c| c.is_done && c.fence <= low);
        let Some(&last) = certain.max_by_key(|c| c.span.issued) else { continue };
        // Changes that completed before this one was issued are no longer visible.
        for change in changes.iter_mut().filter(|c| c.span.completed < last.span.issued) {
            change.sectors &= !bit;
        }
        let mut others = changes.iter().filter(of_sector).filter(|c| c.span != last.span || c.content != last.content);
        // Later changes can coexist with a base. If others overlap it in time, all of them must be kept.
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
