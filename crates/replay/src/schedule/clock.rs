//! Time as the run counts it: nanoseconds since virtual zero, on the monotonic clock.

use iosonar_trace::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Tells the time since virtual zero; negative before it.
pub trait Clock {
    /// Now.
    fn now(&self) -> Nanos;
}

/// `CLOCK_MONOTONIC`, which no one sets and which the kernel's tracepoints can show as well.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    zero_ns: i64,
}

impl Monotonic {
    /// Virtual zero lies that far in the future.
    pub fn starting_in(grace: Nanos) -> Self {
        Self { zero_ns: (monotonic() + grace).0 }
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
}

/// `CLOCK_MONOTONIC`, in nanoseconds since boot.
#[inline]
pub fn monotonic() -> Nanos {
    let t = clock_gettime(ClockId::Monotonic);
    Nanos(t.tv_sec * 1_000_000_000 + t.tv_nsec)
}

/// Wall-clock time, in nanoseconds since 1970 UTC. Only for people: nothing is measured with it.
pub fn wall() -> Nanos {
    let t = clock_gettime(ClockId::Realtime);
    Nanos(t.tv_sec * 1_000_000_000 + t.tv_nsec)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn a_run_counts_on_the_clock_that_nobody_sets() {
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

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let inside = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        inside.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    /// A step of the wall clock during a run cannot reach what never asks for it.
    #[test]
    fn no_stage_that_times_requests_asks_for_the_wall_clock() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let stages = [
            "issuer",
            "engine",
            "run/issuer_thread.rs",
            "pipeline/backoff.rs",
            "pipeline/inline_stages.rs",
            "pipeline/prefetch.rs",
            "pipeline/prepare.rs",
            "result/completion_log.rs",
            "schedule",
        ];
        // This file defines it.
        let is_timing = |path: &&PathBuf| {
            stages.iter().any(|stage| path.starts_with(src.join(stage))) && !path.ends_with("schedule/clock.rs")
        };
        let all = sources(&src);
        let timing: Vec<_> = all.iter().filter(is_timing).collect();
        assert!(timing.len() > 2 * stages.len(), "{timing:?}");
        for path in timing {
            let text = fs::read_to_string(path).unwrap();
            for word in ["wall(", "SystemTime", "Realtime", "REALTIME", "gettimeofday"] {
                assert!(!text.contains(word), "{} asks for the wall clock: {word}", path.display());
            }
        }
    }
}
