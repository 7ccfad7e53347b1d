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

    /// Notes a row.
    pub fn note_row(&mut self) {
        self.has_rows = true;
    }

    /// Notes a row. Returns whether a checkpoint is due; most rows do not read the clock.
    pub fn add_row(&mut self) -> bool {
        self.note_row();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_is_kept_after_a_second() {
        let now = Instant::now();
        let start = now.checked_sub(Duration::from_millis(1500)).unwrap();
        let mut checkpoints = Checkpoints { start, ..Checkpoints::start() };
        assert!(!checkpoints.is_due());
        checkpoints.note_row();
        assert!(checkpoints.is_due());
        checkpoints.note_row();
        assert!(!checkpoints.is_due());
    }
}
