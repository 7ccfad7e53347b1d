//! Clocks. A run counts nanoseconds since virtual zero: on the monotonic clock, or in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use iosonar_trace::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// The time since virtual zero; negative before it.
pub trait Clock {
    /// Time since virtual zero.
    fn now(&self) -> Nanos;

    /// Waits for this long.
    fn sleep(&self, time: Nanos);

    /// A time of `CLOCK_MONOTONIC` on this clock, unless this one is simulated.
    fn of_monotonic(&self, _at: Nanos) -> Option<Nanos> {
        None
    }
}

/// `CLOCK_MONOTONIC`, which is never set, and which kernel tracepoints can also use.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    zero_ns: i64,
}

impl Monotonic {
    /// Virtual zero is this far in the future.
    pub fn starting_in(grace: Nanos) -> Self {
        Self { zero_ns: (monotonic() + grace).0 }
    }

    /// Virtual zero is at this time of the wall clock, as both clocks are set now.
    pub fn starting_at(unix: Nanos) -> Self {
        Self { zero_ns: (unix - wall_offset()).0 }
    }

    /// Virtual zero, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn zero_ns(&self) -> i64 {
        self.zero_ns
    }
}

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> Nanos {
        Nanos(monotonic().0 - self.zero_ns)
    }

    fn sleep(&self, time: Nanos) {
        thread::sleep(Duration::from_nanos(time.0.max(0).unsigned_abs()));
    }

    fn of_monotonic(&self, at: Nanos) -> Option<Nanos> {
        Some(Nanos(at.0 - self.zero_ns))
    }
}

/// A clock that only [`Clock::sleep`] advances. Its copies share the time.
#[derive(Clone, Debug)]
pub struct Virtual(Arc<AtomicI64>);

impl Virtual {
    /// Virtual zero is this far in the future.
    pub fn starting_in(grace: Nanos) -> Self {
        Self(Arc::new(AtomicI64::new(-grace.0)))
    }
}

impl Clock for Virtual {
    #[inline]
    fn now(&self) -> Nanos {
        // Read and advanced by one thread at a time.
        Nanos(self.0.load(Ordering::Relaxed))
    }

    #[inline]
    fn sleep(&self, time: Nanos) {
        let until = self.now() + time.max(Nanos::ZERO);
        self.0.store(until.0, Ordering::Relaxed);
    }
}

/// `CLOCK_MONOTONIC`, in nanoseconds since boot.
#[inline]
pub fn monotonic() -> Nanos {
    let t = clock_gettime(ClockId::Monotonic);
    Nanos(t.tv_sec * 1_000_000_000 + t.tv_nsec)
}

/// Wall-clock time in nanoseconds since 1970 UTC. For display only, never for measurements.
pub fn wall() -> Nanos {
    let t = clock_gettime(ClockId::Realtime);
    Nanos(t.tv_sec * 1_000_000_000 + t.tv_nsec)
}

/// What to add to [`monotonic`] for [`wall`].
pub fn wall_offset() -> Nanos {
    const TRIES: usize = 10;
    /// An interruption between two readings takes longer.
    const SHORT: Nanos = Nanos(2_000);
    let mut best = (Nanos::MAX, Nanos::ZERO);
    for _ in 0..TRIES {
        let (before, now, after) = (monotonic(), wall(), monotonic());
        let took = after - before;
        if took < best.0 {
            best = (took, now - Nanos(before.0 + took.0 / 2));
        }
        if took < SHORT {
            break;
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn a_run_uses_the_monotonic_clock() {
        let own = || {
            let t = clock_gettime(ClockId::Monotonic);
            t.tv_sec * 1_000_000_000 + t.tv_nsec
        };
        let before = own();
        let clock = Monotonic::starting_in(Nanos(5_000_000_000));
        let seen = clock.now().0 + clock.zero_ns();
        assert!((before..=own()).contains(&seen), "not CLOCK_MONOTONIC: {seen}");
        assert!((before..=own()).contains(&(clock.zero_ns() - 5_000_000_000)));
    }

    #[test]
    fn a_time_of_the_wall_clock_becomes_virtual_zero() {
        let before = wall();
        let clock = Monotonic::starting_at(before + Nanos(5_000_000_000));
        let (now, after) = (clock.now(), wall());
        // A generous bound, for a clock that is adjusted meanwhile.
        let elapsed = now.0 + 5_000_000_000;
        assert!((-1_000_000_000..=(after - before).0 + 1_000_000_000).contains(&elapsed), "{elapsed}");
    }

    #[test]
    fn only_waiting_advances_virtual_time() {
        let clock = Virtual::starting_in(Nanos(5));
        let copy = clock.clone();
        assert_eq!([clock.now(), clock.now()], [Nanos(-5); 2]);
        copy.sleep(Nanos(-1));
        assert_eq!(clock.now(), Nanos(-5));
        copy.sleep(Nanos(1_000_000_000_000));
        assert_eq!(clock.now(), Nanos(999_999_999_995));
    }

    fn sources(directory: &Path) -> Vec<PathBuf> {
        let inside = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        inside.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    /// Steps of the wall clock during a run must have no effect.
    #[test]
    fn stages_that_time_requests_do_not_read_the_wall_clock() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let stages = [
            "files/src/replay/engine",
            "files/src/replay/timed.rs",
            "pacing/src/backoff.rs",
            "pacing/src/ideal.rs",
            "pacing/src/idle.rs",
            "pacing/src/stalls.rs",
            "replay/src/issuer",
            "replay/src/engine",
            "replay/src/run/issuer_thread.rs",
            "replay/src/run/inline_stages.rs",
            "replay/src/pipeline/prefetch.rs",
            "replay/src/pipeline/prepare.rs",
            "replay/src/result/completion_log.rs",
            "replay/src/schedule",
        ];
        assert!(stages.iter().all(|stage| crates.join(stage).exists()));
        let is_timing = |path: &&PathBuf| stages.iter().any(|stage| path.starts_with(crates.join(stage)));
        let all: Vec<_> =
            ["files", "pacing", "replay"].iter().flat_map(|name| sources(&crates.join(name).join("src"))).collect();
        let timing: Vec<_> = all.iter().filter(is_timing).collect();
        assert!(timing.len() > 2 * stages.len(), "{timing:?}");
        for path in timing {
            let text = fs::read_to_string(path).unwrap();
            for word in ["wall(", "SystemTime", "Realtime", "REALTIME", "gettimeofday"] {
                assert!(!text.contains(word), "{} reads the wall clock: {word}", path.display());
            }
        }
    }
}
