//! The result of a replayed call.

use iosonar_trace::Nanos;

use super::call::Name;
use super::kind::CallKind;
use super::resolved::Skip;

/// Names of the values of an enumeration, as in the tables.
macro_rules! names {
    ($enum:ident: $($variant:ident $name:literal),* $(,)?) => {
        impl $enum {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name in the tables.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The value of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

/// What kept a call from being issued at its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum HeldBy {
    /// Nothing.
    #[default]
    None,
    /// A call that must precede it had not ended.
    Predecessor,
    /// Its thread was still executing the call before.
    Thread,
    /// The trace was not read fast enough.
    Input,
    /// All threads of the pool were executing calls.
    Pool,
    /// A call that must precede it, which the replayer itself had delayed.
    Replayer,
}

impl HeldBy {
    /// Whether a delay is the replayer's own.
    pub fn is_replayer(self) -> bool {
        matches!(self, Self::None | Self::Input | Self::Replayer)
    }
}

names! { HeldBy: None "none", Predecessor "predecessor", Thread "thread", Input "input", Pool "pool", Replayer "replayer" }

/// What became of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CallOutcome {
    /// Result and errno are those of the original.
    #[default]
    Same,
    /// The original succeeded, the replay failed.
    Failed,
    /// The original failed, the replay succeeded.
    Succeeded,
    /// Both failed, with another errno.
    OtherErrno,
    /// A read or write moved fewer bytes than the original.
    Fewer,
    /// A read or write moved more bytes than the original.
    More,
    /// Another value: a position, a number of bytes of a listing.
    OtherResult,
    /// Not issued: bookkeeping of descriptors and processes.
    Bookkeeping,
    /// Not issued: not a file.
    NotAFile,
    /// Not issued: ignored by a pattern.
    Ignored,
    /// Not issued: below `/proc`, `/sys` or `/dev`.
    KernelFile,
    /// Not issued: memory accesses to mapped files are not recorded.
    Mapped,
    /// Not issued: would make a device node, socket or FIFO.
    SpecialFile,
    /// Not issued: it did not return in the original.
    Unfinished,
    /// Not issued: no replay of it exists.
    NotReplayable,
    /// Not issued: it changes files, or may, and no replay of it exists.
    ChangesFiles,
    /// Not issued: the replay ended before.
    NotReached,
}

names! { CallOutcome: Same "same", Failed "failed", Succeeded "succeeded", OtherErrno "other_errno", Fewer "fewer", More "more", OtherResult "other_result", Bookkeeping "bookkeeping", NotAFile "not_a_file", Ignored "ignored", KernelFile "kernel_file", Mapped "mapped", SpecialFile "special_file", Unfinished "unfinished", NotReplayable "not_replayable", ChangesFiles "changes_files", NotReached "not_reached" }

impl CallOutcome {
    /// Whether the call was issued.
    pub fn is_issued(self) -> bool {
        use CallOutcome::{Failed, Fewer, More, OtherErrno, OtherResult, Same, Succeeded};
        matches!(self, Same | Failed | Succeeded | OtherErrno | Fewer | More | OtherResult)
    }

    /// Whether the call differed from the original.
    pub fn is_mismatch(self) -> bool {
        self.is_issued() && self != Self::Same
    }
}

impl From<Skip> for CallOutcome {
    fn from(reason: Skip) -> Self {
        match reason {
            Skip::Bookkeeping => Self::Bookkeeping,
            Skip::NotAFile => Self::NotAFile,
            Skip::Ignored => Self::Ignored,
            Skip::KernelFile => Self::KernelFile,
            Skip::Mapped => Self::Mapped,
            Skip::SpecialFile => Self::SpecialFile,
            Skip::Unfinished => Self::Unfinished,
            Skip::NotReplayable => Self::NotReplayable,
            Skip::ChangesFiles => Self::ChangesFiles,
        }
    }
}

/// A replayed call. Times are since virtual zero, the scheduled time of the first call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// Its number in the trace, from 0, counting all rows.
    pub call: u64,
    /// Which of the concurrent instances made it, from 0.
    pub instance: u32,
    /// The thread that made it in the trace.
    pub thread: u32,
    /// Which call.
    pub kind: CallKind,
    /// The file, as `state` resolved it: the path within the root.
    pub path: Option<Name>,
    /// Where in the file it began.
    pub position: Option<u64>,
    /// Bytes that were asked for.
    pub length: Option<u64>,
    /// When it should begin: by the trace, or by its predecessors if they ended later and the timing says so.
    pub scheduled: Nanos,
    /// Taken right before the call; `None` if it was not issued.
    pub issued: Option<Nanos>,
    /// Taken right after the call.
    pub completed: Option<Nanos>,
    /// When the last of its predecessors completed in the replay; `None` without predecessors.
    pub predecessors_end: Option<Nanos>,
    /// The gap in the trace between the end of its latest predecessor and its begin, for the compute time error ratio.
    pub gap: Option<Nanos>,
    /// What kept it from being issued at its time.
    pub held_by: HeldBy,
    /// What it returned; -1 if it failed.
    pub result: Option<i64>,
    /// Why it failed, else 0.
    pub errno: i32,
    /// What the original returned. Descriptors are compared only as valid or not.
    pub expected_result: Option<i64>,
    /// Why the original failed, else 0.
    pub expected_errno: i32,
    /// How long the original took.
    pub expected_duration: Option<Nanos>,
    /// What became of it.
    pub outcome: CallOutcome,
}
