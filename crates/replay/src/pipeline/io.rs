//! What travels between the rooms: a request on its way to the target, and one that is through.

use iosonar_trace::{DelayReason, DeviceId, Flags, IoResult, Nanos, Op, Outcome, Sector, Sectors};

use crate::pipeline::buffers::Buffer;

/// A request that is ready to be issued: placed on the target, its data built.
#[derive(Debug)]
pub struct PreparedIo {
    /// Its place among all requests of this run, from 1. Requests that overlap are issued in this order.
    pub sequence_number: u64,
    /// Its number in the load.
    pub request: u64,
    /// How many times the load was replayed in full before it.
    pub iteration: u32,
    /// Its device in the load.
    pub device: DeviceId,
    /// Which of the run's targets it goes to.
    pub target: u16,
    /// Its sector in the load.
    pub source_sector: Sector,
    /// Its sector on the target.
    pub sector: Sector,
    /// Its length on the target.
    pub sectors: Sectors,
    /// What it does.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// When the load wants it issued, since virtual zero.
    pub scheduled: Nanos,
    /// When it is to be issued: then, or later on purpose.
    pub deadline: Nanos,
    /// When it was ready.
    pub ready: Nanos,
    /// Whether it was widened to the target's logical blocks.
    pub widened: bool,
    /// Why it is not to be issued at all, if so.
    pub skip: Option<Outcome>,
    /// Memory for its data; `None` where it moves none or is not to be issued.
    pub buffer: Option<Buffer>,
}

impl PreparedIo {
    /// Its row, as far as it is known before it is issued.
    pub fn record(&self) -> IoResult {
        IoResult {
            request: self.request,
            iteration: self.iteration,
            device: self.device,
            source_sector: self.source_sector,
            sector: self.sector,
            sectors: self.sectors,
            op: self.op,
            flags: self.flags,
            scheduled: self.scheduled,
            issued: None,
            completed: None,
            ready: Some(self.ready),
            submitted: None,
            last_empty_poll: None,
            bytes_done: 0,
            in_flight: 0,
            waiting: 0,
            pushed_back: false,
            widened: self.widened,
            delay_reason: DelayReason::None,
            outcome: self.skip.unwrap_or(Outcome::Unfinished),
            errno: 0,
        }
    }
}

/// A request that is through: its row, and the memory that can be used again.
#[derive(Debug)]
pub struct CompletedIo {
    /// What happened.
    pub record: IoResult,
    /// See [`PreparedIo::sequence_number`].
    pub sequence_number: u64,
    /// Which of the run's targets it went to.
    pub target: u16,
    /// The highest sequence number that the loop had taken when this one was through: what comes later was issued later.
    pub admitted: u64,
    /// What was read at once after it, where that was asked for.
    pub reread: Option<Reread>,
    /// Its buffer, for the completion log to look at and to give back.
    pub buffer: Option<Buffer>,
}

/// How a write was read at once after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reread {
    /// When that was issued.
    pub issued: Nanos,
    /// When it was through.
    pub completed: Nanos,
    /// Bytes that it read, or a negated error number.
    pub result: i64,
}
