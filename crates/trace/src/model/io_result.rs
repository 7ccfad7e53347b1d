//! One row of a run: a request, and what happened to it.

use crate::model::request::{DeviceId, Flags, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};

/// What happened to one request. Times count from the run's virtual zero: the scheduled time of its first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoResult {
    /// Its number in the load, from 0, over the whole load (not only the window).
    pub request: u64,
    /// Complete iterations of the load before this one.
    pub iteration: u32,
    /// The device it was for in the load.
    pub device: DeviceId,
    /// Its sector in the load.
    pub source_sector: Sector,
    /// The sector that was used on the target, after wrap-around and widening.
    pub sector: Sector,
    /// The length that was asked of the target, after widening.
    pub sectors: Sectors,
    /// What it did.
    pub op: Op,
    /// How it did that.
    pub flags: Flags,
    /// When the load wants it to be issued.
    pub scheduled: Nanos,
    /// When it was issued: taken right before its submission. `None` if it never was.
    pub issued: Option<Nanos>,
    /// When its completion was seen. `None` if it never was.
    pub completed: Option<Nanos>,
    /// When it lay ready for the issuing loop, its data built; kept with `--verbose`.
    pub ready: Option<Nanos>,
    /// When the call that submitted it returned; kept with `--verbose`.
    pub submitted: Option<Nanos>,
    /// The last poll after its issue that found no completions: it completed between then and `completed`; kept with
    /// `--verbose`.
    pub last_empty_poll: Option<Nanos>,
    /// Bytes that the target says it moved.
    pub bytes_done: u64,
    /// Requests in flight right after its issue, itself included.
    pub in_flight: u32,
    /// Requests that were due and not yet issued at its issue, pushed-back ones included, itself not.
    pub waiting: u32,
    /// Whether it had to wait for a request that it overlaps.
    pub pushed_back: bool,
    /// Whether it was widened to the target's logical blocks.
    pub widened: bool,
    /// What delayed it, other than an overlap.
    pub delay_reason: DelayReason,
    /// How it ended.
    pub outcome: Outcome,
    /// The error number for [`Outcome::Error`], else 0.
    pub errno: i32,
}

impl IoResult {
    /// The row of a request that stays where the load has it, before anything happened to it.
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
        }
    }

    /// From issue to completion.
    pub fn latency(&self) -> Option<Nanos> {
        Some(self.completed? - self.issued?)
    }

    /// From the scheduled time to the issue.
    pub fn delay(&self) -> Option<Nanos> {
        Some(self.issued? - self.scheduled)
    }

    /// Whether nothing but the replayer itself delayed it. The one definition; `docs/schema.md` has it in SQL. A load that
    /// was read too late, or a journal that was written too slowly, is the replayer's own fault, so such requests count.
    /// Those that waited for the device, or were postponed on purpose, don't.
    pub fn is_not_held_back(&self) -> bool {
        use DelayReason::{Depth, Order, Perturbed};
        self.issued.is_some() && !self.pushed_back && !matches!(self.delay_reason, Depth | Order | Perturbed)
    }
}

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$vdoc:meta])* $variant:ident = $number:literal $text:literal $(was $old:literal)?,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { #[default] $($(#[$vdoc])* $variant = $number,)* }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in the table.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The one of that name, or of the name that it had in version 1 of the table.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($text $(| $old)? => Some(Self::$variant),)*
                    _ => Option::None,
                }
            }

            /// The one of that number.
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
        /// The most requests allowed in flight were in flight.
        Depth = 1 "depth",
        /// An earlier request had to wait for an overlap, and order was asked for.
        Order = 2 "order",
        /// The load was not read, its data not built, or no buffer free for it in time.
        Input = 3 "input",
        /// The completion log could not check and write results as fast as the requests completed.
        CompletionLog = 4 "completion_log" was "recorder",
        /// It was postponed on purpose.
        Perturbed = 5 "perturbed",
    }
}

impl DelayReason {
    /// Why the request was late, where neither the device nor the depth was the cause: for people, behind a colon.
    pub fn phrase(self) -> Option<&'static str> {
        match self {
            Self::None | Self::Depth => None,
            Self::Order => Some("an earlier request overlapped one in flight"),
            Self::Input => Some("the replayer did not read the load, or build data, in time"),
            Self::CompletionLog => Some("the replayer could not write the results fast enough"),
            Self::Perturbed => Some("--perturb delayed it"),
        }
    }
}

named_enum! {
    /// How a request ended.
    Outcome {
        /// All of it was done.
        Ok = 0 "ok",
        /// The target did less than asked, without an error.
        Short = 1 "short",
        /// The target returned an error: see its number.
        Error = 2 "error",
        /// Issued, but its completion was never seen.
        Unfinished = 3 "unfinished",
        /// Left out: it overlapped a request in flight, and dropping was asked for.
        Dropped = 4 "dropped",
        /// Left out: it crosses the end of the target, even after wrap-around.
        BeyondEnd = 5 "beyond_end",
        /// Left out: it is not aligned to the target's logical blocks, and rejecting was asked for.
        Unaligned = 6 "unaligned",
        /// Left out: it is larger than the memory for buffers.
        TooLarge = 7 "too_large",
        /// Left out: the target can't do this operation.
        Unsupported = 8 "unsupported",
        /// Left out: its device is mapped to no target, or writes were forbidden.
        Excluded = 9 "excluded",
        /// Done, but the data that was read is not what was written.
        Corrupt = 10 "corrupt",
    }
}

impl Outcome {
    /// Whether the request was never given to the target.
    pub fn is_skipped(self) -> bool {
        use Outcome::{BeyondEnd, Dropped, Excluded, TooLarge, Unaligned, Unsupported};
        matches!(self, Dropped | BeyondEnd | Unaligned | TooLarge | Unsupported | Excluded)
    }
}
