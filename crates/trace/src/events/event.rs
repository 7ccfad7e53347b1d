//! One event of a request's life, as tracers write it.

use crate::error::Result;
use crate::model::metadata::Metadata;
use crate::model::request::{Comm, DeviceId, Flags, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

/// Requests that may wait for the completion of the one in front of them.
pub const MAX_WAITING: usize = 1 << 18;
/// How long after a request its completion is waited for. No device takes that long: the kernel gives up before.
pub const MAX_AGE: Nanos = Nanos(300_000_000_000);

/// What happens to a request on its way, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// `Q`: asked for.
    Queue,
    /// `G`: a place in the queue was got for it.
    GetRequest,
    /// `I`: put into the scheduler's queue.
    Insert,
    /// `D`: given to the device's driver.
    Issue,
    /// `R`: taken back from the driver, which could not take it yet; it will be given to it again.
    Requeue,
    /// `C`: completed.
    Complete,
    /// `C` with the error EAGAIN: it must not wait (`REQ_NOWAIT`, the first try of io_uring), and would have had to.
    Refuse,
    /// `X`: split; the event is where the rest begins, and how long that is it does not say.
    Split,
}

impl Action {
    /// The actions that a request can be taken from.
    pub const CHOICES: [Self; 4] = [Self::Queue, Self::GetRequest, Self::Insert, Self::Issue];

    /// Its letter, as blktrace and blkparse have it.
    pub fn letter(self) -> char {
        ['Q', 'G', 'I', 'D', 'R', 'C', 'C', 'X'][self as usize]
    }

    /// The choice of that letter.
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::CHOICES.into_iter().find(|action| action.letter() == letter.to_ascii_uppercase())
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// What happened.
    pub action: Action,
    /// On which device.
    pub device: DeviceId,
    /// Where.
    pub sector: Sector,
    /// How long.
    pub sectors: Sectors,
    /// What the request does.
    pub op: Op,
    /// How it does that.
    pub flags: Flags,
    /// Whether it is appended to a zone: it says where that begins, and its completion where the device wrote.
    pub is_append: bool,
    /// The process that caused the event.
    pub pid: Option<u32>,
    /// Its name.
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

/// Hands out the events of a trace.
pub trait EventSource: Send {
    /// The next event.
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Event>>;

    /// How far it is through its files, from 0 to 1, where that can be said.
    fn progress(&self) -> Option<f64>;
}

/// A flush has no place, and rules of its own.
pub fn is_flush(event: &Event) -> bool {
    event.op == Op::Flush && event.sectors.0 == 0
}
