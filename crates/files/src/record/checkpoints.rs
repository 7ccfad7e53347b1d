//! Checkpoints of a recording: what was recorded is not lost if the recorder is killed.

use std::time::{Duration, Instant};

use iosonar_trace::Result;

use crate::{Call, CallWriter, Metadata};

/// The interval between checkpoints is a fraction of the elapsed time, within these limits. Each checkpoint ends a row group,
/// and the file's footer grows with their number.
const MIN_INTERVAL: Duration = Duration::from_secs(5);
const MAX_INTERVAL: Duration = Duration::from_secs(300);
const ELAPSED_PARTS: u32 = 50;

/// Calls between two readings of the clock.
const CALLS: u32 = 1 << 10;

/// Writes a recording with checkpoints from time to time.
pub struct Checkpoints {
    so_far: Metadata,
    start: Instant,
    next: Duration,
    calls: u32,
}

impl Checkpoints {
    /// Names the processes that exist now. The metadata is that of the recording if it ends early.
    pub fn start(writer: &mut dyn CallWriter, known: &Metadata) -> Self {
        if !known.processes.is_empty() {
            writer.learn_processes(&known.processes);
        }
        let so_far = Metadata { complete: false, ..known.clone() };
        Self { so_far, start: Instant::now(), next: MIN_INTERVAL, calls: 0 }
    }

    /// Writes a call.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, writer: &mut dyn CallWriter, call: &Call) -> Result<()> {
        writer.write(call)?;
        self.calls += 1;
        if self.calls < CALLS {
            return Ok(());
        }
        self.calls = 0;
        let elapsed = self.start.elapsed();
        if elapsed < self.next {
            return Ok(());
        }
        self.next = elapsed + (elapsed / ELAPSED_PARTS).clamp(MIN_INTERVAL, MAX_INTERVAL);
        writer.checkpoint(&self.so_far)
    }
}
