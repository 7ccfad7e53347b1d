//! The interface of the laws of a simulated device.

use std::fmt;

use iosonar_trace::{Flags, Nanos, Op};

/// A request as it arrives at the device.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it arrives, since the first arrival.
    pub at: Nanos,
    /// Identifies the request; the same in every run of the load.
    pub key: u64,
    /// Read, write, flush, discard or write of zeroes.
    pub op: Op,
    /// Flags of the operation, such as FUA.
    pub flags: Flags,
    /// Position in bytes, below the size of the device.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Requests in the device, with this one.
    pub in_device: usize,
}

impl Arrival {
    /// Whether it changes data.
    pub fn writes(&self) -> bool {
        matches!(self.op, Op::Write | Op::WriteZeroes)
    }

    /// The chunks of this size that it covers, on a device of `chunks` chunks. What is beyond its end is at its beginning.
    pub fn chunks(&self, size: u64, chunks: u64) -> impl Iterator<Item = u64> + use<> {
        let first = self.offset / size;
        let last = if self.length > 0 { (self.offset + self.length - 1) / size + 1 } else { first };
        (first..last.min(first.saturating_add(chunks))).map(move |chunk| chunk % chunks)
    }
}

/// What the laws have decided about a request so far.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// The earliest start of its service.
    pub start: Nanos,
    /// The time from `start` to its completion, if it does not need the medium.
    pub answer: Option<Nanos>,
    /// The service time of the medium is multiplied by it.
    pub factor: f64,
    /// Added to the service time of the medium.
    pub extra: Nanos,
}

impl Passage {
    /// Of a request that arrives now.
    pub fn starting(at: Nanos) -> Self {
        Self { start: at, answer: None, factor: 1.0, extra: Nanos::ZERO }
    }
}

/// A law: one property of a simulated device. It sees all requests in the order of their arrival.
pub trait Law: fmt::Debug {
    /// Changes the passage of a request.
    fn apply(&mut self, request: &Arrival, passage: &mut Passage);
}
