//! The current time of a trace, robust against a single event with a wrong time.

use crate::model::units::Nanos;

/// The earlier of the times of the last two events.
pub struct Clock {
    last: Nanos,
    now: Nanos,
}

impl Default for Clock {
    fn default() -> Self {
        Self { last: Nanos(i64::MIN), now: Nanos(i64::MIN) }
    }
}

impl Clock {
    /// Adds the time of the next event.
    pub fn advance(&mut self, at: Nanos) {
        self.now = at.min(self.last);
        self.last = at;
    }

    pub fn now(&self) -> Nanos {
        self.now
    }
}
