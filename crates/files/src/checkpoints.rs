//! When a recording gets a checkpoint: what was written is not lost if the program is killed.

use std::time::{Duration, Instant};

use iosonar_trace::output::CheckpointSchedule;

/// The times of the checkpoints of a table.
pub struct Checkpoints {
    start: Instant,
    schedule: CheckpointSchedule,
    has_rows: bool,
}

impl Checkpoints {
    /// The table begins now.
    pub fn start() -> Self {
        let mut schedule = CheckpointSchedule::default();
        // There is nothing to keep yet.
        schedule.is_due(Duration::ZERO);
        Self { start: Instant::now(), schedule, has_rows: false }
    }

    /// Notes a row.
    pub fn note_row(&mut self) {
        self.has_rows = true;
    }

    /// Whether a checkpoint is due.
    pub fn is_due(&mut self) -> bool {
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
