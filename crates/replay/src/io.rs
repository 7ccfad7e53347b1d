//! Requests between the stages: prepared for the loop, and completed.

use iosonar_pacing::buffers::Buffer;
use iosonar_trace::{DelayReason, DeviceId, Flags, IoResult, Nanos, Op, Outcome, Sector, Sectors};
use iosonar_workload::filament::Ticket;

/// The part of a loop in a shared request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Issues it.
    Owner,
    /// Keeps conflicting requests of its loop apart from it.
    Guard,
    /// A guard that has agreed and holds the head of its queue.
    AgreedGuard,
}

/// A loop's side of a shared request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Index of its state.
    pub state: u16,
    /// The part of this loop.
    pub role: Role,
    /// The loop that issues it.
    pub owner: u8,
}

impl Share {
    /// Whether it is never issued by this loop.
    #[inline]
    pub fn is_guard(&self) -> bool {
        self.role != Role::Owner
    }
}

/// A request that is ready to be issued: placed on the target, with its data.
#[derive(Debug)]
pub struct PreparedIo {
    /// Its position among all requests of this run, from 1. Requests that overlap are issued in this order.
    pub sequence_number: u64,
    /// Its number in the load, from 0.
    pub request: u64,
    /// Complete iterations of the load before this one.
    pub iteration: u32,
    /// Its device in the load.
    pub device: DeviceId,
    /// Index of its target.
    pub target: u16,
    /// Its sector in the load.
    pub source_sector: Sector,
    /// Its sector on the target.
    pub sector: Sector,
    /// Its length on the target.
    pub sectors: Sectors,
    /// Read, write, flush, discard or write of zeroes.
    pub op: Op,
    /// Flags of the operation, such as FUA.
    pub flags: Flags,
    /// When the load issues it, since virtual zero.
    pub scheduled: Nanos,
    /// When to issue it: the scheduled time, or later if perturbed.
    pub deadline: Nanos,
    /// When it was prepared.
    pub ready: Nanos,
    /// Whether it was widened to the target's logical blocks.
    pub widened: bool,
    /// Why it is not issued, if so.
    pub skip: Option<Outcome>,
    /// Memory for its data; `None` if it has no data or is not issued.
    pub buffer: Option<Buffer>,
    /// The part of a program that asked for it, or the request of the load that it waits for; `None` if there is neither.
    pub origin: Option<Origin>,
    /// The part of this loop in it, if it concerns several loops.
    pub share: Option<Share>,
}

/// Two cache lines: the loop's queue moves from one processor to another.
const _: () = assert!(size_of::<PreparedIo>() == 128);

/// Who asked for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The stream of a program.
    pub stream: Option<u16>,
    /// The request whose completion made a filament ask for it, or that a request of a load waits for.
    pub cause: Option<u64>,
    /// For the completion, if that wakes a filament.
    pub ticket: Option<Ticket>,
}

impl PreparedIo {
    /// A request as the load has it: due at `scheduled`, ready long before, at the same sectors of the first target as of
    /// the first device of the load, in the order of its number, without flags and without memory for its data. Set other
    /// fields with `PreparedIo { target, ..PreparedIo::new(...) }`.
    pub fn new(request: u64, op: Op, sector: Sector, sectors: Sectors, scheduled: Nanos) -> Self {
        Self {
            sequence_number: request + 1,
            request,
            iteration: 0,
            device: DeviceId(0),
            target: 0,
            source_sector: sector,
            sector,
            sectors,
            op,
            flags: Flags::NONE,
            scheduled,
            deadline: scheduled,
            ready: Nanos(i64::MIN / 2),
            widened: false,
            skip: None,
            buffer: None,
            origin: None,
            share: None,
        }
    }

    /// A copy for another loop, which tracks it and does not issue it.
    pub fn guard(&self, share: Share) -> Self {
        Self { buffer: None, origin: None, share: Some(share), ..*self }
    }

    /// Its row, as far as known before it is issued.
    #[inline]
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
            stream: self.origin.and_then(|origin| origin.stream),
            cause: self.origin.and_then(|origin| origin.cause),
        }
    }
}

/// A completed, skipped or unfinished request.
#[derive(Debug)]
pub struct CompletedIo {
    /// The row of the result table.
    pub record: IoResult,
    /// See [`PreparedIo::sequence_number`].
    pub sequence_number: u64,
    /// The number of the loop that issued it.
    pub issuer: u16,
    /// Whether it was late because the load demands more than the loop can issue ([`demand`](iosonar_pacing::demand)).
    pub is_late_by_load: bool,
    /// Index of its target.
    pub target: u16,
    /// At least the highest sequence number admitted when this request completed: higher ones are issued later.
    pub admitted: u64,
    /// The read-back of a write, if requested.
    pub reread: Option<Reread>,
    /// Its buffer, to be checked and returned.
    pub buffer: Option<Buffer>,
}

/// A read of the data of a completed write, immediately afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reread {
    /// When it was issued.
    pub issued: Nanos,
    /// When it completed.
    pub completed: Nanos,
    /// Bytes read, or a negated error number.
    pub result: i64,
}

#[cfg(test)]
pub mod testing {
    //! Requests for tests.

    use super::*;

    /// A write that is due at `at`.
    pub fn write(request: u64, at: i64, sector: u64, sectors: u64) -> PreparedIo {
        PreparedIo::new(request, Op::Write, Sector(sector), Sectors(sectors), Nanos(at))
    }
}
