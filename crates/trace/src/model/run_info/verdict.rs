//! The verdict on a run: whether it kept the load's times as far as that was the replayer's to do.

use serde::{Deserialize, Serialize};

use super::times::{Quantiles, Within};

/// Why a request was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The most requests allowed were in flight: the device had not answered.
    Depth,
    /// It waited for a request that it overlaps.
    Overlap,
    /// An earlier one waited for an overlap, and order was asked for.
    Order,
    /// It was postponed on purpose.
    Perturbed,
    /// It was not read, or its data not built, in time.
    Input,
    /// The completion log could not check and write results as fast as requests completed.
    CompletionLog,
    /// The call that submitted earlier requests took long.
    Submission,
    /// Taking completions back took long.
    Completions,
    /// The processor was taken away from the loop, or it was woken late.
    Descheduled,
    /// Many were due at once, and the loop was busy with those before it.
    Burst,
    /// None of these.
    Unknown,
}

impl Cause {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Depth,
        Self::Overlap,
        Self::Order,
        Self::Perturbed,
        Self::Input,
        Self::CompletionLog,
        Self::Submission,
        Self::Completions,
        Self::Descheduled,
        Self::Burst,
        Self::Unknown,
    ];

    /// In a few words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Depth => "depth was full",
            Self::Overlap => "waited for an overlap",
            Self::Order => "kept in order",
            Self::Perturbed => "put off on purpose",
            Self::Input => "was not ready",
            Self::CompletionLog => "waited for the completion log",
            Self::Submission => "a submission took long",
            Self::Completions => "taking completions took long",
            Self::Descheduled => "processor taken away",
            Self::Burst => "many due at once",
            Self::Unknown => "cause unknown",
        }
    }

    /// For people, behind "because".
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Depth => "as many requests were in flight as --depth allows",
            Self::Overlap => "they overlapped a request in flight",
            Self::Order => "an earlier request waited for an overlap",
            Self::Perturbed => "--perturb delayed them",
            Self::Input => "the load was not read, or data not built, in time",
            Self::CompletionLog => "the journal could not be written fast enough",
            Self::Submission => "submission calls took long",
            Self::Completions => "reaping completions took long",
            Self::Descheduled => "the replay loop was preempted",
            Self::Burst => "many were due at once",
            Self::Unknown => "of an unknown cause",
        }
    }

    /// Whether the device made a request late, and not the replayer.
    pub fn is_due_to_device(self) -> bool {
        matches!(self, Self::Depth | Self::Overlap | Self::Order)
    }
}

/// How many requests were late for a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// Why.
    pub cause: Cause,
    /// How many were more than 50 µs late.
    pub requests: u64,
}

/// A request that was late, the worst of its tenth of a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Its scheduled time, in seconds since virtual zero.
    pub at_s: f64,
    /// Its number in the load.
    pub request: u64,
    /// By how much.
    pub late_us: f64,
    /// Why, as far as it is known.
    pub cause: Cause,
}

/// One part of the requests, and how late they went out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// How many they are.
    pub requests: u64,
    /// Issue time less scheduled time; null if there are none.
    pub delay_us: Option<Quantiles>,
    /// Percentage of them that went out within so many µs; null if there are none.
    pub within_pct: Option<Within>,
}

/// The verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether it kept the load's times as far as that was the replayer's to do.
    pub faithful: bool,
    /// The same for people, with the reason.
    pub sentence: String,
    /// Requests that were not held back: nothing but the replayer could make them late. Those within 50 µs are the criterion.
    pub own: Part,
    /// Requests that waited for the device: for room in the depth, or for one that they overlap.
    pub device: Part,
    /// Requests that were more than 50 µs late, by cause; causes without any are left out.
    pub late: Vec<Late>,
    /// The worst moments, worst first.
    pub worst: Vec<Moment>,
    /// What to try if it was not faithful, the most promising first.
    #[serde(default)]
    pub remedies: Vec<Remedy>,
}

/// Something to try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// What, as it would be typed or said.
    #[serde(rename = "try")]
    pub what: String,
    /// What it takes.
    pub costs: String,
}
