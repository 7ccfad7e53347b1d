//! How far a run is, for other threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::Thread;

use iosonar_trace::Nanos;

use crate::clock::Monotonic;
use crate::in_flight::InFlight;
use crate::live::{Live, Snapshot};

/// Progress of the run, for other threads.
#[derive(Debug, Default)]
pub struct Progress {
    /// Virtual zero on the monotonic clock, in ns; 0 while the run is being prepared. With `--start-at`, an estimate until
    /// shortly before it.
    pub zero_ns: AtomicI64,
    /// Whether all is prepared and the start time is not yet known.
    pub is_ready: AtomicBool,
    /// Whether the last request has completed.
    pub is_finishing: AtomicBool,
    /// The longest delay of a completed request since the last reading with [`Progress::take_longest_delay`]; negative if
    /// there is none.
    longest_delay_ns: LongestDelay,
    /// Unparked when the run begins another stage.
    pub observer: OnceLock<Thread>,
    /// Rows so far, skipped requests included.
    pub requests: AtomicU64,
    /// Bytes that they moved.
    pub bytes: AtomicU64,
    /// Requests that failed or read corrupt data.
    pub errors: AtomicU64,
    /// Scheduled time of the last row, in ns since virtual zero.
    pub scheduled_ns: AtomicI64,
    /// Requests that the target completed.
    pub completed: AtomicU64,
    /// Requests in flight.
    pub in_flight: InFlight,
    /// Sectors that the final pass has to check; 0 before it.
    pub to_verify: AtomicU64,
    /// Sectors that it has checked, or could not read.
    pub verified: AtomicU64,
    /// Sectors with wrong data.
    pub mismatches: AtomicU64,
    /// Counts by operation with distributions, if something shows them.
    pub live: Option<Live>,
}

/// In ns; negative without a delay.
#[derive(Debug)]
struct LongestDelay(AtomicI64);

impl Default for LongestDelay {
    fn default() -> Self {
        Self(AtomicI64::new(-1))
    }
}

impl Progress {
    /// With counts by operation.
    pub fn with_live(live: Option<Live>) -> Self {
        Self { live, ..Self::default() }
    }

    /// What was counted so far; `None` if nothing shows it.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.live.as_ref().map(|live| live.snapshot(|| self.in_flight.total()))
    }

    /// Sets virtual zero.
    pub fn set_zero(&self, clock: Monotonic) {
        if self.zero_ns.swap(clock.zero_ns(), Ordering::Relaxed) == 0 {
            self.wake_observer();
        }
    }

    /// Begins to wait for the start time.
    pub fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Relaxed);
        self.wake_observer();
    }

    /// Ends the stage in which requests are issued.
    pub fn set_finishing(&self) {
        self.is_finishing.store(true, Ordering::Relaxed);
        self.wake_observer();
    }

    fn wake_observer(&self) {
        if let Some(observer) = self.observer.get() {
            observer.unpark();
        }
    }

    /// A request has completed this late.
    pub fn add_delay(&self, delay: Nanos) {
        self.longest_delay_ns.0.fetch_max(delay.0, Ordering::Relaxed);
    }

    /// The longest delay of the requests that completed since the last call.
    pub fn take_longest_delay(&self) -> Option<Nanos> {
        Some(Nanos(self.longest_delay_ns.0.swap(-1, Ordering::Relaxed))).filter(|delay| *delay >= Nanos::ZERO)
    }

    /// Updates the progress of the final pass.
    pub fn set_final_pass(&self, verified: u64, mismatches: u64, to_verify: u64) {
        self.verified.store(verified, Ordering::Relaxed);
        self.mismatches.store(mismatches, Ordering::Relaxed);
        self.to_verify.store(to_verify, Ordering::Relaxed);
    }
}
