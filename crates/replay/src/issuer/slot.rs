//! Requests that have a place, from admission to end.

use std::sync::Arc;

use iosonar_trace::{IoResult, Nanos, Op, Outcome, SECTOR_BYTES};

use super::limits::Pace;
use crate::pipeline::buffers::{Arena, Buffer};
use crate::pipeline::io::{PreparedIo, Reread};
use crate::verify::header;

/// A request that has a place, from its admission to its end.
pub(super) struct Slot {
    pub buffer: Option<Buffer>,
    pub sequence_number: u64,
    pub target: u16,
    pub record: IoResult,
    /// Set while what the write wrote is being read again.
    pub reread: Option<Reread>,
}

impl Slot {
    /// Of a request that was just admitted, or left out.
    #[inline]
    pub fn new(planned: PreparedIo, record: IoResult) -> Self {
        let PreparedIo { sequence_number, target, buffer, .. } = planned;
        Self { buffer, sequence_number, target, record, reread: None }
    }

    /// Notes that it is issued now.
    #[inline]
    pub fn issue(&mut self, now: Nanos, pace: Pace) {
        if let Some(reread) = &mut self.reread {
            reread.issued = now;
            return;
        }
        self.record.issued = Some(now);
        if pace == Pace::AsFastAsPossible {
            self.record.scheduled = now;
        }
    }

    /// Notes what the target said, which had nothing to say at `last_empty_poll`.
    #[inline]
    pub fn end(&mut self, result: i64, now: Nanos, last_empty_poll: Nanos) {
        let record = &mut self.record;
        record.completed = Some(now);
        record.last_empty_poll = record.issued.map(|issued| last_empty_poll.max(issued));
        match u64::try_from(result) {
            Err(_) => {
                record.outcome = Outcome::Error;
                record.errno = -result as i32;
            }
            Ok(bytes) => {
                let asked = record.sectors.0 * SECTOR_BYTES;
                // Operations without data return 0.
                record.bytes_done = if self.buffer.is_some() { bytes } else { asked };
                record.outcome = if record.bytes_done < asked { Outcome::Short } else { Outcome::Ok };
            }
        }
    }
}

/// Places for requests, in flight or waiting.
pub(super) struct Slots {
    all: Vec<Option<Slot>>,
    free: Vec<u32>,
}

impl Slots {
    pub fn new(places: usize) -> Self {
        Self { all: std::iter::repeat_with(|| None).take(places).collect(), free: (0..places as u32).rev().collect() }
    }

    /// The place that the next [`occupy`](Self::occupy) takes. The limits see to it that there is one.
    #[inline]
    pub fn next_free(&self) -> u32 {
        *self.free.last().expect("fewer in use than the limits allow")
    }

    #[inline]
    pub fn occupy(&mut self, slot: Slot) {
        let place = self.free.pop().expect("fewer in use than the limits allow");
        self.all[place as usize] = Some(slot);
    }

    #[inline]
    pub fn get_mut(&mut self, place: u32) -> &mut Slot {
        self.all[place as usize].as_mut().expect("an occupied slot")
    }

    /// Takes a request from its place, which is not free yet: it may come back.
    #[inline]
    pub fn take(&mut self, place: u32) -> Option<Slot> {
        self.all.get_mut(place as usize)?.take()
    }

    /// Puts a request back to its place.
    pub fn put_back(&mut self, place: u32, slot: Slot) {
        self.all[place as usize] = Some(slot);
    }

    /// Frees a place whose request was taken.
    #[inline]
    pub fn free(&mut self, place: u32) {
        self.free.push(place);
    }

    /// Takes all requests that are still there.
    pub fn drain(&mut self) -> impl Iterator<Item = Slot> {
        self.all.iter_mut().filter_map(Option::take)
    }
}

/// Has every write read again at once after it, into the same memory.
pub struct Rereader {
    /// Where the memory is.
    pub arena: Arc<Arena>,
    /// The run's number.
    pub run: u64,
}

impl Rereader {
    /// Gets what was done ready to be read again, if there is anything. What was written is spoilt in memory, so that a
    /// target that reads nothing is seen.
    pub(super) fn wants(&self, slot: &mut Slot) -> bool {
        let (Op::Write, Some(buffer)) = (slot.record.op, &mut slot.buffer) else { return false };
        let is_something = slot.record.bytes_done >= SECTOR_BYTES;
        if is_something {
            header::poison(self.arena.bytes_mut(buffer, slot.record.sectors.bytes()), self.run);
            slot.reread = Some(Reread { issued: Nanos::ZERO, completed: Nanos::ZERO, result: 0 });
        }
        is_something
    }
}
