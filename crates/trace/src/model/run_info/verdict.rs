//! The verdict on a run: whether it was faithful.

use serde::{Deserialize, Serialize};

use super::times::{Quantiles, Within};

/// Why a request was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// As many requests as the depth allows were in flight.
    Depth,
    /// It waited for a request that it overlaps.
    Overlap,
    /// An earlier request waited for an overlap, and the conflict mode keeps the order.
    Order,
    /// It was postponed on purpose (`--perturb`).
    Perturbed,
    /// It was not read, or its data not built, in time.
    Input,
    /// The completion log could not check and write results as fast as requests completed.
    CompletionLog,
    /// The call that submitted earlier requests took long.
    Submission,
    /// Reaping completions took long.
    Completions,
    /// The issuing thread was preempted or woken late.
    Descheduled,
    /// It waited for the depth or an overlap, but only because the replayer had been late before.
    Backlog,
    /// Many requests were due at once, and the loop was busy with earlier ones.
    Burst,
    /// None of these.
    Unknown,
}

impl Cause {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Depth,
        Self::Overlap,
        Self::Order,
        Self::Perturbed,
        Self::Input,
        Self::CompletionLog,
        Self::Submission,
        Self::Completions,
        Self::Descheduled,
        Self::Backlog,
        Self::Burst,
        Self::Unknown,
    ];

    /// A short name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Depth => "depth was full",
            Self::Overlap => "waited for an overlap",
            Self::Order => "kept in order",
            Self::Perturbed => "postponed on purpose",
            Self::Input => "was not ready",
            Self::CompletionLog => "waited for the completion log",
            Self::Submission => "a submission took long",
            Self::Completions => "reaping took long",
            Self::Descheduled => "loop was preempted",
            Self::Backlog => "backlog of a stall",
            Self::Burst => "many due at once",
            Self::Unknown => "cause unknown",
        }
    }

    /// A clause that follows "because".
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
            Self::Descheduled => "the issuing loop was preempted",
            Self::Backlog => "the replayer had been stalled, and made up for it",
            Self::Burst => "many were due at once",
            Self::Unknown => "of an unknown cause",
        }
    }

    /// Whether the device, not the replayer, made the request late.
    pub fn is_due_to_device(self) -> bool {
        matches!(self, Self::Depth | Self::Overlap | Self::Order)
    }
}

/// The number of requests that were late for one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// Why these requests were late.
    pub cause: Cause,
    /// Requests more than 50 µs late.
    pub requests: u64,
}

/// The latest request of a tenth of a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Its scheduled time, in seconds since virtual zero.
    pub at_s: f64,
    /// The number of the request in the load.
    pub request: u64,
    /// How late it was, in microseconds.
    pub late_us: f64,
    /// Why it was late.
    pub cause: Cause,
}

/// The delays of a part of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Number of requests.
    pub requests: u64,
    /// Issue − scheduled time; null without requests.
    pub delay_us: Option<Quantiles>,
    /// Percentage of requests issued within 10, 25, 50 and 100 µs of their scheduled time; null without requests.
    pub within_pct: Option<Within>,
}

/// Whether the replay was faithful, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether at least 95 % of the requests not held back were issued within 50 µs of their scheduled time; null if the
    /// result is fake.
    pub faithful: Option<bool>,
    /// Of a fake result, whether it kept its times, by the same rule; missing in real ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_times: Option<bool>,
    /// The same as a sentence, with the reason.
    pub sentence: String,
    /// Requests that were not held back: only the replayer could make them late. They decide on `faithful`.
    pub own: Part,
    /// Requests that waited for the device: for the depth, or for a request they overlap.
    pub device: Part,
    /// Requests more than 50 µs late, by cause; causes without requests are left out.
    pub late: Vec<Late>,
    /// The worst moments, worst first.
    pub worst: Vec<Moment>,
    /// Remedies if the run was not faithful, the most promising first.
    #[serde(default)]
    pub remedies: Vec<Remedy>,
}

impl Verdict {
    /// Whether the replay was faithful; not if that is unknown.
    pub fn is_faithful(&self) -> bool {
        self.faithful == Some(true)
    }

    /// Whether the replay was not faithful; not if that is unknown.
    pub fn is_unfaithful(&self) -> bool {
        self.faithful == Some(false)
    }

    /// Why the replay was not faithful, or did not keep the times of its fake result.
    pub fn unfaithful(&self) -> Option<&str> {
        (self.faithful.or(self.kept_times) == Some(false)).then(|| why(&self.sentence))
    }

    /// The same of a fake result: how its times were kept is no verdict on a storage.
    pub fn of_fake(mut self) -> Self {
        self.kept_times = self.faithful.take();
        if let Some((_, times)) = self.sentence.split_once(": ") {
            self.sentence = format!("{NONE}{times}");
        }
        self
    }
}

/// How the sentence of a fake result begins.
const NONE: &str = "none, as the result is fake: ";

/// The sentence, of a fake result without its beginning.
pub(super) fn why(sentence: &str) -> &str {
    sentence.strip_prefix(NONE).unwrap_or(sentence)
}

/// A change that may make the next run faithful.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// The change: an option to type, or an instruction.
    #[serde(rename = "try")]
    pub what: String,
    /// What it costs, as a phrase.
    pub costs: String,
}
