//! Where events were lost.

use crate::model::metadata::Metadata;

/// Within so many events of when a source told that events were lost they were lost: it reads that far ahead.
const TOLD_WITHIN: u64 = 1 << 15;

/// Which requests may have lost an event.
#[derive(Default)]
pub struct Losses {
    seen: u64,
    events: u64,
    until: u64,
    before: u64,
}

impl Losses {
    /// If so many were lost somewhere in the first events.
    pub fn told_within(lost: u64, events: u64) -> Self {
        Self { seen: lost, until: if lost > 0 { events + TOLD_WITHIN } else { 0 }, ..Self::default() }
    }

    /// Requests before the one of this number may have lost their completion.
    pub fn before(&self) -> u64 {
        self.before
    }

    /// At each event; `next` is the number of the next request.
    pub fn look(&mut self, about: &Metadata, next: u64) {
        self.events += 1;
        if about.counts.lost_events != self.seen {
            self.seen = about.counts.lost_events;
            self.until = self.events + TOLD_WITHIN;
        }
        if self.events < self.until {
            self.before = next;
        }
    }
}
