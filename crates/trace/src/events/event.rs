//! One event of a request, as tracers write it.

use crate::error::Result;
use crate::model::metadata::Metadata;
use crate::model::request::{Comm, DeviceId, Flags, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

/// Most requests that wait for the completion of an earlier one.
pub const MAX_PENDING: usize = 1 << 18;
/// How long to wait for the completion of a request. The kernel's timeouts are shorter.
pub const MAX_AGE: Nanos = Nanos(300_000_000_000);

/// An action of blktrace, in the order in which they happen to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// `Q`: queued.
    Queue,
    /// `G`: the kernel allocated a request for it.
    GetRequest,
    /// `I`: inserted into the scheduler's queue.
    Insert,
    /// `D`: issued to the device's driver.
    Issue,
    /// `R`: requeued by the driver, which cannot take it yet; the kernel will issue it again.
    Requeue,
    /// `C`: completed.
    Complete,
    /// `C` with the error EAGAIN: it would block, but must not (`REQ_NOWAIT`, as in the first try of io_uring).
    Refuse,
    /// `X`: split. The sector is that of the rest; the event does not have the length of the rest.
    Split,
}

impl Action {
    /// The actions that requests can be taken from.
    pub const CHOICES: [Self; 4] = [Self::Queue, Self::GetRequest, Self::Insert, Self::Issue];

    /// The letter of blktrace and blkparse.
    pub fn letter(self) -> char {
        ['Q', 'G', 'I', 'D', 'R', 'C', 'C', 'X'][self as usize]
    }

    /// The choice with this letter.
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::CHOICES.into_iter().find(|action| action.letter() == letter.to_ascii_uppercase())
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time.
    pub at: Nanos,
    /// Action.
    pub action: Action,
    /// Device.
    pub device: DeviceId,
    /// Start position.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Operation of the request.
    pub op: Op,
    /// Flags of the operation.
    pub flags: Flags,
    /// Whether it is a zone append: its sector is the start of the zone, but that of its completion is where the device
    /// wrote.
    pub is_append: bool,
    /// The process that caused the event.
    pub pid: Option<u32>,
    /// Name of that process.
    pub comm: Comm,
}

impl Event {
    pub(crate) fn request(&self) -> Request {
        Request {
            at: self.at,
            device: self.device,
            sector: self.sector,
            sectors: self.sectors,
            op: self.op,
            flags: self.flags,
            latency: None,
            queued: None,
            pid: self.pid,
            comm: self.comm,
        }
    }
}

/// Reads the events of a trace.
pub trait EventSource: Send {
    /// The next event. Adds devices, counts and warnings to the metadata.
    fn next(&mut self, metadata: &mut Metadata) -> Result<Option<Event>>;

    /// The part of the files that has been read, from 0 to 1, if it is known.
    fn progress(&self) -> Option<f64>;
}

/// Whether the event is one of a flush without data. These have no position; see [`super::flushes`].
pub fn is_flush(event: &Event) -> bool {
    event.op == Op::Flush && event.sectors.0 == 0
}
