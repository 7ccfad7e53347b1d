//! When a recording or a result gets a checkpoint: what was written is not lost if the program is killed.

use std::time::{Duration, Instant};

use iosonar_trace::output::CheckpointSchedule;

/// Rows between two readings of the clock.
const ROWS: u32 = 1 << 10;

/// The times of the checkpoints of a table.
pub struct Checkpoints {
    start: Instant,
    schedule: CheckpointSchedule,
    unread: u32,
    has_rows: bool,
}

impl Checkpoints {
    /// The table begins now.
    pub fn start() -> Self {
        let mut schedule = CheckpointSchedule::default();
        // There is nothing to keep yet.
        schedule.is_due(Duration::ZERO);
        Self { start: Instant::now(), schedule, unread: 0, has_rows: false }
    }

    /// Notes a row. Returns whether a checkpoint is due; most rows do not read the clock.
    pub fn add_row(&mut self) -> bool {
        self.has_rows = true;
        self.unread += 1;
        self.unread >= ROWS && self.is_due()
    }

    /// Whether a checkpoint is due.
    pub fn is_due(&mut self) -> bool {
        self.unread = 0;
        let is_due = self.has_rows && self.schedule.is_due(self.start.elapsed());
        self.has_rows &= !is_due;
        is_due
    }
}
