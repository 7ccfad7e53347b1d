//! Slots: requests between admission and completion.

use std::sync::Arc;

use iosonar_pacing::buffers::{Arena, Buffer};
use iosonar_pacing::ideal::{Hold, is_late_by_replayer};
use iosonar_trace::{DelayReason, IoResult, Nanos, Op, Outcome, SECTOR_BYTES};
use iosonar_workload::filament::Ticket;

use super::limits::Pace;
use crate::io::Share;
use crate::io::{CompletedIo, PreparedIo, Reread};
use crate::verify::header;

/// What held back a request in its queue, other than an overlap.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueDelay {
    /// What would have delayed an ideal replayer as well.
    pub by: DelayReason,
    pub hold: Hold,
    /// When the completion log last held it.
    pub by_log_until: Nanos,
}

impl QueueDelay {
    pub const NOTHING: Self = Self { by: DelayReason::None, hold: Hold::NONE, by_log_until: Hold::NONE.until };

    /// Whether the completion log held a request with this deadline.
    pub fn is_by_log(&self, deadline: Nanos) -> bool {
        self.by_log_until > deadline
    }
}

/// An admitted request.
pub(super) struct Slot {
    pub buffer: Option<Buffer>,
    pub sequence_number: u64,
    pub target: u16,
    pub record: IoResult,
    /// For its completion, if a program waits for it.
    pub ticket: Option<Ticket>,
    /// Set while the data of a completed write is read back.
    pub reread: Option<Reread>,
    /// If it concerns several loops.
    pub share: Option<Share>,
    /// When it was to be issued.
    deadline: Nanos,
    pub held: QueueDelay,
    /// The requests that it overlaps.
    pub overlap: Hold,
    /// When an ideal replayer would have issued it.
    ideal: Nanos,
    /// See [`CompletedIo::is_late_by_load`].
    pub is_late_by_load: bool,
    /// See [`StallMonitor::blind`](super::StallMonitor::blind): at its issue.
    blind: Nanos,
}

impl Slot {
    /// The request for the completion log, with its buffer; see [`CompletedIo::admitted`].
    #[inline]
    pub fn completed(&mut self, issuer: u16, admitted: u64) -> CompletedIo {
        let &mut Self { sequence_number, target, record, reread, is_late_by_load, .. } = self;
        let buffer = self.buffer.take();
        CompletedIo { record, sequence_number, issuer, is_late_by_load, target, admitted, reread, buffer }
    }

    /// A request that was just admitted or left out.
    #[inline]
    pub fn new(io: PreparedIo, record: IoResult) -> Self {
        let PreparedIo { sequence_number, target, buffer, origin, share, deadline, .. } = io;
        let ticket = origin.and_then(|origin| origin.ticket);
        let (held, overlap) = (QueueDelay::NOTHING, Hold::NONE);
        let (ideal, blind, reread) = (deadline, Nanos::ZERO, None);
        Self {
            buffer,
            sequence_number,
            target,
            record,
            ticket,
            reread,
            share,
            deadline,
            held,
            overlap,
            ideal,
            is_late_by_load: false,
            blind,
        }
    }

    /// When it was to be issued.
    #[inline]
    pub fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// Records the issue time. `blind` is the loop's blind time at the issue.
    #[inline]
    pub fn mark_issued(&mut self, now: Nanos, pace: Pace, blind: Nanos) {
        if let Some(reread) = &mut self.reread {
            reread.issued = now;
            return;
        }
        self.record.issued = Some(now);
        self.blind = blind;
        if pace == Pace::AsFastAsPossible {
            self.record.scheduled = now;
            self.ideal = now;
        } else {
            self.find_reason(now);
        }
    }

    /// Records the issue time of an engine that issues requests later than it takes them.
    pub fn mark_issued_by_engine(&mut self, at: Nanos, pace: Pace) {
        let blind = self.blind;
        self.mark_issued(at, pace, blind);
        if self.reread.is_none() {
            // No call of the loop submitted it.
            self.record.submitted = None;
        }
    }

    /// Finds the reason of its delay.
    #[inline]
    fn find_reason(&mut self, issued: Nanos) {
        let Self { deadline, held, overlap, record, .. } = self;
        let deadline = *deadline;
        self.ideal = held.hold.and(*overlap).ideal_issue(deadline, issued);
        let is_by_log = held.is_by_log(deadline);
        let is_input_late = record.ready.is_some_and(|ready| ready > deadline);
        let is_held = held.hold.until > deadline;
        let is_late_by_replayer =
            (is_held || overlap.until > deadline || is_by_log) && is_late_by_replayer(deadline, self.ideal, issued);
        record.delay_reason = if is_held && !is_late_by_replayer {
            held.by
        } else if is_by_log {
            DelayReason::CompletionLog
        } else if is_input_late {
            DelayReason::Input
        } else if is_late_by_replayer {
            DelayReason::Backlog
        } else if deadline > record.scheduled {
            DelayReason::Perturbed
        } else {
            DelayReason::None
        };
    }

    /// Its end, as a hold of other requests. `seen` is the earliest moment at which it can have been, if the loop was blind.
    #[inline]
    pub fn end(&self, now: Nanos, seen: Nanos) -> Hold {
        let issued = self.record.issued.unwrap_or(now);
        Hold::by_completion(now, seen.max(issued), issued, self.ideal)
    }

    /// See [`StallMonitor::blind`](super::StallMonitor::blind): at its issue.
    #[inline]
    pub fn blind(&self) -> Nanos {
        self.blind
    }

    /// Records the result. `last_empty_poll` is when the target was last polled without finding a completion.
    #[inline]
    pub fn complete(&mut self, result: i64, now: Nanos, last_empty_poll: Nanos) {
        let record = &mut self.record;
        record.completed = Some(now);
        record.last_empty_poll = record.issued.map(|issued| last_empty_poll.max(issued));
        match u64::try_from(result) {
            Err(_) => {
                record.outcome = Outcome::Error;
                record.errno = -result as i32;
            }
            Ok(bytes) => {
                let requested = record.sectors.0 * SECTOR_BYTES;
                // Operations without data return 0.
                record.bytes_done = if self.buffer.is_some() { bytes } else { requested };
                record.outcome = if record.bytes_done < requested { Outcome::Short } else { Outcome::Ok };
            }
        }
    }
}

/// All slots, for requests in flight or waiting.
pub(super) struct Slots {
    all: Vec<Option<Slot>>,
    free: Vec<u32>,
}

impl Slots {
    pub fn new(count: usize) -> Self {
        Self { all: std::iter::repeat_with(|| None).take(count).collect(), free: (0..count as u32).rev().collect() }
    }

    /// The slot that the next [`occupy`](Self::occupy) uses. The limits ensure that there is one.
    #[inline]
    pub fn next_free(&self) -> u32 {
        *self.free.last().expect("the limits bound the slots in use")
    }

    /// Takes a slot out of use without a request, until it is [freed](Self::free).
    pub fn reserve(&mut self) -> u32 {
        self.free.pop().expect("the limits bound the slots in use")
    }

    #[inline]
    pub fn occupy(&mut self, slot: Slot) {
        let index = self.free.pop().expect("the limits bound the slots in use");
        self.all[index as usize] = Some(slot);
    }

    #[inline]
    pub fn get_mut(&mut self, index: u32) -> &mut Slot {
        self.all[index as usize].as_mut().expect("an occupied slot")
    }

    /// The request in a slot, if there is one: a slot can also have a guard.
    #[inline]
    pub fn find_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.all[index as usize].as_mut()
    }

    /// Takes a request out of its slot without freeing the slot.
    #[inline]
    pub fn take(&mut self, index: u32) -> Option<Slot> {
        self.all.get_mut(index as usize)?.take()
    }

    /// Frees a slot with its request.
    #[inline]
    pub fn vacate(&mut self, index: u32) {
        self.all[index as usize] = None;
        self.free(index);
    }

    /// Frees a slot whose request was taken.
    #[inline]
    pub fn free(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Takes all requests.
    pub fn drain(&mut self) -> impl Iterator<Item = Slot> {
        self.all.iter_mut().filter_map(Option::take)
    }
}

/// Reads each completed write back immediately, into the same buffer.
pub struct Rereader {
    /// The memory of the buffers.
    pub arena: Arc<Arena>,
    /// The run's random number.
    pub run: u64,
}

impl Rereader {
    /// Prepares the read-back of a completed write; false if there is nothing to read back. The buffer is poisoned, to
    /// detect a read that returns nothing.
    pub(super) fn prepare_reread(&self, slot: &mut Slot) -> bool {
        let (Op::Write, Some(buffer)) = (slot.record.op, &mut slot.buffer) else { return false };
        let has_data = slot.record.bytes_done >= SECTOR_BYTES;
        if has_data {
            header::poison(self.arena.bytes_mut(buffer, slot.record.sectors.bytes()), self.run);
            slot.reread = Some(Reread { issued: Nanos::ZERO, completed: Nanos::ZERO, result: 0 });
        }
        has_data
    }
}
