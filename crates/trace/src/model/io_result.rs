//! One row of a run: a request and its result.

use crate::model::request::{DeviceId, Flags, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

/// The result of one request. Times count from virtual zero, the scheduled time of the first replayed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoResult {
    /// Its number in the load, from 0, over the whole load (not only the window).
    pub request: u64,
    /// Complete iterations of the load before this one.
    pub iteration: u32,
    /// The index of its device in the load.
    pub device: DeviceId,
    /// Its sector in the load, before placement on the target.
    pub source_sector: Sector,
    /// Its sector on the target, after wrap-around or scaling, and widening.
    pub sector: Sector,
    /// Its length on the target, after widening.
    pub sectors: Sectors,
    /// Operation.
    pub op: Op,
    /// Flags of the operation.
    pub flags: Flags,
    /// Scheduled time.
    pub scheduled: Nanos,
    /// Time right before its submission; with threads, before the call of its thread. `None` if it was never issued.
    pub issued: Option<Nanos>,
    /// When the loop saw its completion. `None` if it never did.
    pub completed: Option<Nanos>,
    /// When it was prepared, its data built; kept with `--verbose`.
    pub ready: Option<Nanos>,
    /// When the call that submitted it returned; kept with `--verbose`.
    pub submitted: Option<Nanos>,
    /// The last poll after its issue that found no completions: it completed between then and `completed`; kept with
    /// `--verbose`.
    pub last_empty_poll: Option<Nanos>,
    /// Bytes moved, as the target reports.
    pub bytes_done: u64,
    /// Requests in flight right after its issue, itself included.
    pub in_flight: u32,
    /// Requests due but not issued at its issue, including pushed-back ones, excluding itself.
    pub waiting: u32,
    /// Whether it waited for a request that it overlaps.
    pub pushed_back: bool,
    /// Whether it was widened to the target's logical blocks.
    pub widened: bool,
    /// What delayed it, other than an overlap.
    pub delay_reason: DelayReason,
    /// How it ended.
    pub outcome: Outcome,
    /// The error number for [`Outcome::Error`], else 0.
    pub errno: i32,
    /// The stream of a program that asked for it; `None` if it is from a load.
    pub stream: Option<u16>,
    /// The request whose completion made the program ask for it.
    pub cause: Option<u64>,
}

impl IoResult {
    /// The row of a request that was not issued yet, at the position it has in the load.
    pub fn of(request: &Request, number: u64) -> Self {
        Self {
            request: number,
            iteration: 0,
            device: request.device,
            source_sector: request.sector,
            sector: request.sector,
            sectors: request.sectors,
            op: request.op,
            flags: request.flags,
            scheduled: request.at,
            issued: None,
            completed: None,
            ready: None,
            submitted: None,
            last_empty_poll: None,
            bytes_done: 0,
            in_flight: 0,
            waiting: 0,
            pushed_back: false,
            widened: false,
            delay_reason: DelayReason::None,
            outcome: Outcome::Unfinished,
            errno: 0,
            stream: None,
            cause: None,
        }
    }

    /// The data that it moved, in bytes: flushes, discards and write-zeroes move none. The only definition in Rust;
    /// `docs/schema.md` has it in words.
    pub fn bytes_moved(&self) -> u64 {
        if matches!(self.op, Op::Read | Op::Write) { self.bytes_done } else { 0 }
    }

    /// From issue to completion.
    pub fn latency(&self) -> Option<Nanos> {
        Some(self.completed? - self.issued?)
    }

    /// From the scheduled time to the issue.
    pub fn delay(&self) -> Option<Nanos> {
        Some(self.issued? - self.scheduled)
    }

    /// Whether nothing but the replayer held it back. This is the only definition in Rust; `docs/schema.md` has it in SQL.
    /// Reading the load too late, writing the journal too slowly, or a backlog of the replayer's own is the replayer's fault,
    /// so such requests are not held back. Requests that waited for the device, or were postponed on purpose, are. Of requests
    /// with an unknown reason nothing is known, so they do not count either.
    pub fn is_not_held_back(&self) -> bool {
        use DelayReason::{Backlog, CompletionLog, Depth, Input, None, Order, Perturbed, Unknown};
        let is_own = match self.delay_reason {
            Backlog => true,
            None | Input | CompletionLog => !self.pushed_back,
            Depth | Order | Perturbed | Unknown => false,
        };
        self.issued.is_some() && is_own
    }
}

/// Defines an enum whose variants have numbers, and names in a table, which may have been others in an earlier version.
#[macro_export]
macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$vdoc:meta])* $variant:ident = $number:literal $text:literal $(was $old:literal)?,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { #[default] $($(#[$vdoc])* $variant = $number,)* }

        impl $name {
            /// All variants, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in the table.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The variant with this name, in this version or version 1 of the table.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text $(| $old)? => Some(Self::$variant),)*
                    _ => Option::None,
                }
            }

            /// The variant with this number.
            pub fn from_number(number: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|x| *x as u8 == number)
            }
        }
    };
}

named_enum! {
    /// What delayed a request, other than an overlap.
    DelayReason {
        /// Nothing.
        None = 0 "none" was "nothing",
        /// As many requests as the depth allows were in flight.
        Depth = 1 "depth",
        /// An earlier request waited for an overlap, and the conflict mode keeps the order.
        Order = 2 "order",
        /// The load was not read, its data was not built, or no buffer was free in time.
        Input = 3 "input",
        /// The completion log could not check and write results as fast as the requests completed.
        CompletionLog = 4 "completion_log" was "recorder",
        /// It was postponed on purpose (`--perturb`).
        Perturbed = 5 "perturbed",
        /// The program that made the run does not say it.
        Unknown = 6 "unknown",
        /// It waited for the depth or an overlap, but only because the replayer had been late before.
        Backlog = 7 "backlog",
    }
}

impl DelayReason {
    /// The reason as a clause that follows a colon; `None` if the device or the depth was the cause, or if it is unknown.
    pub fn phrase(self) -> Option<&'static str> {
        match self {
            Self::None | Self::Depth | Self::Unknown => None,
            Self::Order => Some("an earlier request overlapped one in flight"),
            Self::Input => Some("the replayer did not read the load, or build data, in time"),
            Self::CompletionLog => Some("the replayer could not write the results fast enough"),
            Self::Perturbed => Some("--perturb delayed it"),
            Self::Backlog => Some("the replayer had been stalled before, and made up for it"),
        }
    }
}

named_enum! {
    /// How a request ended.
    Outcome {
        /// It completed in full.
        Ok = 0 "ok",
        /// The target moved fewer bytes than its length, without an error.
        Short = 1 "short",
        /// The target returned the error in `errno`.
        Error = 2 "error",
        /// Issued, but its completion was never seen.
        Unfinished = 3 "unfinished",
        /// Not issued: it overlapped a request in flight, and the conflict mode is `drop`.
        Dropped = 4 "dropped",
        /// Not issued: it crosses the end of the target, even after wrap-around.
        BeyondEnd = 5 "beyond_end",
        /// Not issued: it is not aligned to the target's logical blocks, and unaligned requests are rejected.
        Unaligned = 6 "unaligned",
        /// Not issued: it is larger than the memory for buffers.
        TooLarge = 7 "too_large",
        /// Not issued: the target does not support the operation.
        Unsupported = 8 "unsupported",
        /// Not issued: its device is mapped to no target, or writes were forbidden.
        Excluded = 9 "excluded",
        /// It completed, but the data read differs from the data written.
        Corrupt = 10 "corrupt",
    }
}

impl Outcome {
    /// Whether the request was never issued.
    pub fn is_skipped(self) -> bool {
        use Outcome::{BeyondEnd, Dropped, Excluded, TooLarge, Unaligned, Unsupported};
        matches!(self, Dropped | BeyondEnd | Unaligned | TooLarge | Unsupported | Excluded)
    }
}
