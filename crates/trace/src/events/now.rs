//! The time of the events, which one event of a wild time does not move.

use crate::model::units::Nanos;

/// The earlier of the times of the last two events.
pub struct Now {
    last: Nanos,
    now: Nanos,
}

impl Default for Now {
    fn default() -> Self {
        Self { last: Nanos(i64::MIN), now: Nanos(i64::MIN) }
    }
}

impl Now {
    /// The time of the next event.
    pub fn see(&mut self, at: Nanos) {
        self.now = at.min(self.last);
        self.last = at;
    }

    /// What time it is.
    pub fn is(&self) -> Nanos {
        self.now
    }
}
