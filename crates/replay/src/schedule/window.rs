//! The part of a load that is replayed.

use iosonar_trace::Nanos;
use serde::Serialize;

/// A part of the load, in its own time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// From here on. Zero is the load's beginning, also of one that begins before its zero.
    pub start: Nanos,
    /// Up to, but not including. In a footer null is the load's end.
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
    /// Whether a time lies before it.
    pub fn is_behind(&self, at: Nanos) -> bool {
        self.start != Nanos::ZERO && at < self.start
    }
}
