//! The result of a replayed call.

use iosonar_trace::{Nanos, named_enum};

use super::call::Name;
use super::kind::CallKind;
use super::resolved::Skip;

named_enum! {
    /// What kept a call from being issued at its time.
    DelayReason {
        /// Nothing.
        None = 0 "none",
        /// A call that must precede it had not ended.
        Predecessor = 1 "predecessor",
        /// Its thread was still executing the call before.
        Thread = 2 "thread",
        /// The trace was not read fast enough.
        Input = 3 "input",
        /// All threads of the pool were executing calls.
        Pool = 4 "depth" was "pool",
        /// A call that must precede it, which the replayer itself had delayed.
        Replayer = 5 "backlog" was "replayer",
    }
}

impl DelayReason {
    /// Whether a delay is the replayer's own.
    pub fn is_replayer(self) -> bool {
        matches!(self, Self::None | Self::Input | Self::Replayer)
    }
}

named_enum! {
    /// What became of a call.
    CallOutcome {
        /// Result and errno are those of the original.
        Same = 0 "same",
        /// The original succeeded, the replay failed.
        Failed = 1 "failed",
        /// The original failed, the replay succeeded.
        Succeeded = 2 "succeeded",
        /// Both failed, with another errno.
        OtherErrno = 3 "other_errno",
        /// A read or write moved fewer bytes than the original.
        Fewer = 4 "fewer",
        /// A read or write moved more bytes than the original.
        More = 5 "more",
        /// Another value: a position, a number of bytes of a listing.
        OtherResult = 6 "other_result",
        /// Not issued: bookkeeping of descriptors and processes.
        Bookkeeping = 7 "bookkeeping",
        /// Not issued: not a file.
        NotAFile = 8 "not_a_file",
        /// Not issued: ignored by a pattern.
        Ignored = 9 "ignored",
        /// Not issued: below `/proc`, `/sys` or `/dev`.
        KernelFile = 10 "kernel_file",
        /// Not issued: memory accesses to mapped files are not recorded.
        Mapped = 11 "mapped",
        /// Not issued: would make a device node, socket or FIFO.
        SpecialFile = 12 "special_file",
        /// Not issued: it did not return in the original.
        Unfinished = 13 "unfinished",
        /// Not issued: no replay of it exists.
        NotReplayable = 14 "not_replayable",
        /// Not issued: it changes files, or may, and no replay of it exists.
        ChangesFiles = 15 "changes_files",
        /// Not issued: the replay ended before.
        NotReached = 16 "not_reached",
    }
}

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
    pub delay_reason: DelayReason,
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
