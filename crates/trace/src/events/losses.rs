//! Where in the trace events were lost.

use crate::model::metadata::Metadata;

/// Sources read ahead: a loss that they report may affect this many events after the report.
const READ_AHEAD: u64 = 1 << 15;

/// Which requests may have lost an event.
#[derive(Default)]
pub struct Losses {
    /// Lost events reported so far.
    reported: u64,
    events: u64,
    /// Number of the event up to which the last loss may have occurred.
    until: u64,
    before: u64,
}

impl Losses {
    /// For a trace that lost `lost` of its first `events` events.
    pub fn within(lost: u64, events: u64) -> Self {
        Self { reported: lost, until: if lost > 0 { events + READ_AHEAD } else { 0 }, ..Self::default() }
    }

    /// Requests before this number may have lost their completion.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// Checks for losses before an event; `next` is the number of the next request.
    pub fn check(&mut self, metadata: &Metadata, next: u64) {
        self.events += 1;
        if metadata.counts.lost_events != self.reported {
            self.reported = metadata.counts.lost_events;
            self.until = self.events + READ_AHEAD;
        }
        if self.events < self.until {
            self.before = next;
        }
    }
}
