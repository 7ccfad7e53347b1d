//! Filaments: small event-driven programs that ask for requests.
//!
//! A [`Filament`] is called with the event that woke it. It asks for further events and returns: a request, whose completion
//! is an event; a timer; a message to another filament. One that asks for requests by timers alone is *open*: its requests
//! have times that do not depend on the device. One that asks at completions is *closed*. The [`Runtime`] holds any number of
//! them and is driven by the issuing loop, or by [`open_load()`] without a device.
//!
//! Term and idea: E. Anderson, M. Kallahalla, M. Uysal, R. Swaminathan, "Buttress: A toolkit for flexible and high fidelity
//! I/O benchmarking", FAST 2004.

mod context;
mod open_load;
mod outstanding;
mod runtime;
mod timers;

use iosonar_trace::{DeviceId, Flags, Nanos, Op, Outcome, Sector, Sectors};

pub use context::FilamentContext;
pub use open_load::{OpenLoad, open_load};
pub use outstanding::{SubmittedRequest, Ticket};
pub use runtime::Runtime;
pub use timers::TimerId;

/// The most a filament can ask for each time it is woken.
pub const MAX_EVENTS: usize = 8;

/// A small event-driven program.
pub trait Filament: Send {
    /// Called with the event that woke it. Time stands still meanwhile: [`FilamentContext::now`] is the time of the event, not the
    /// later time at which a processor was free for it. So timers do not drift.
    fn wake(&mut self, event: Event, context: &mut FilamentContext<'_>);

    /// The most events that it has asked for and that have not occurred: requests, timers and messages together.
    fn max_pending(&self) -> u32 {
        2
    }
}

/// Identifies a filament of a [`Runtime`]: its number in the order in which they were added, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilamentId(pub u32);

/// Wakes a filament.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It begins.
    Start,
    /// A timer that it set.
    Timer(TimerId),
    /// A request that it asked for has completed.
    Completed(Completed),
    /// A message.
    Message {
        /// The filament that sent it.
        from: FilamentId,
        /// The number that was sent.
        value: u64,
    },
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The tag that the request was issued with.
    pub tag: u32,
    /// The number of the request in the run.
    pub request: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Bytes moved.
    pub bytes: u64,
}

/// A request that a filament asks for. It is issued at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSpec {
    /// Operation.
    pub op: Op,
    /// Flags of the operation, such as FUA.
    pub flags: Flags,
    /// Device of the program, from 0.
    pub device: DeviceId,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Returned with the completion.
    pub tag: u32,
}

/// Why a program cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overrun {
    /// A filament asked for more than [`MAX_EVENTS`] at once.
    Events(FilamentId),
    /// A filament has more pending events than its [`Filament::max_pending`].
    Pending(FilamentId),
    /// A filament set a timer or sent a message for a time that has passed.
    Past(FilamentId, Nanos),
    /// A filament sent a message to one that does not exist.
    Unknown(FilamentId, FilamentId),
    /// A filament gave up, for this reason.
    Failed(String),
}

impl std::fmt::Display for Overrun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Events(FilamentId(n)) => write!(f, "filament {n} asked for more than {MAX_EVENTS} events at once"),
            Self::Pending(FilamentId(n)) => write!(f, "filament {n} has more pending events than it declares"),
            Self::Past(FilamentId(n), at) => {
                write!(f, "filament {n} asked for an event at {} s, which has passed", at.as_secs())
            }
            Self::Unknown(FilamentId(n), FilamentId(to)) => {
                write!(f, "filament {n} sent a message to filament {to}, which does not exist")
            }
            Self::Failed(why) => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests;
