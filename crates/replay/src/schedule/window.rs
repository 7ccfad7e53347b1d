//! The part of a load that is replayed.

use iosonar_trace::Nanos;
use serde::Serialize;

/// A part of the load, in times of the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Start, inclusive. Zero is the beginning of the load, even if its times are negative.
    pub start: Nanos,
    /// End, exclusive. Serialized as null if it is the end of the load.
    #[serde(serialize_with = "end_or_null")]
    pub end: Nanos,
}

fn end_or_null<S: serde::Serializer>(end: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    Some(end).filter(|end| **end != Nanos::MAX).serialize(serializer)
}

impl Default for Window {
    fn default() -> Self {
        Self { start: Nanos::ZERO, end: Nanos::MAX }
    }
}

impl Window {
    /// Whether a time is before the window.
    pub fn is_before_start(&self, at: Nanos) -> bool {
        self.start != Nanos::ZERO && at < self.start
    }
}
