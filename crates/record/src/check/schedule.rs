//! Finds out whether the "recording" is the load that the run replayed. A recording never has the scheduled times to the
//! nanosecond, unless the run met all of them to the nanosecond.

use std::hash::{DefaultHasher, Hash, Hasher};

use iosonar_trace::{IoResult, Nanos, Op, Request, Sector, Sectors};

/// Sums over the requests of both sides, whatever their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schedule {
    scheduled: u64,
    recorded: u64,
    /// Whether any request was issued at another time than scheduled.
    has_delays: bool,
}

impl Schedule {
    /// Adds a row of the run; `zero` is its first scheduled time.
    pub fn add_row(&mut self, row: &IoResult, zero: Nanos) {
        let at = row.scheduled - zero;
        self.scheduled = self.scheduled.wrapping_add(hash(row.op, row.source_sector, row.sectors, at));
        self.has_delays |= row.delay() != Some(Nanos::ZERO);
    }

    /// Adds a recorded request; `zero` is the time of the first.
    pub fn add_recorded(&mut self, request: &Request, zero: Nanos) {
        let at = request.at - zero;
        self.recorded = self.recorded.wrapping_add(hash(request.op, request.sector, request.sectors, at));
    }

    /// Whether all requests were recorded exactly at their scheduled times.
    pub fn is_the_load(&self) -> bool {
        self.has_delays && self.scheduled == self.recorded
    }
}

fn hash(op: Op, sector: Sector, sectors: Sectors, at: Nanos) -> u64 {
    let mut hasher = DefaultHasher::new();
    (op, sector, sectors, at).hash(&mut hasher);
    hasher.finish()
}
