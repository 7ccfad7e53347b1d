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
