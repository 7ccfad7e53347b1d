//! Times of a call: taken right before and right after it.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};

use iosonar_pacing::clock::{Clock, Monotonic};
use iosonar_trace::Nanos;

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Taken right before it.
    pub issued: Nanos,
    /// Taken right after it.
    pub completed: Nanos,
    /// What it returned; -1 if it failed.
    pub result: i64,
    /// Why it failed, else 0.
    pub errno: i32,
}

/// The run's clock, and where a thread announces that it issues a call.
#[derive(Clone, Copy, Debug)]
pub struct IssueClock<'a> {
    pub clock: Monotonic,
    /// Gets the time right before the call, in ns. `None` if no other call depends on the issue of a call.
    pub announced: Option<&'a AtomicI64>,
}

impl IssueClock<'_> {
    /// The time right before a call, announced.
    fn issue(self) -> Nanos {
        let now = self.clock.now();
        if let Some(announced) = self.announced {
            announced.store(now.0, Ordering::Release);
        }
        now
    }
}

/// Times a call that returns -1 and sets `errno` if it fails.
pub fn timed(clock: IssueClock<'_>, call: impl FnOnce() -> i64) -> Issued {
    let issued = clock.issue();
    let result = call();
    let completed = clock.clock.now();
    let errno = if result < 0 { errno() } else { 0 };
    Issued { issued, completed, result: result.max(-1), errno }
}

/// A call that failed before it was issued, on the way to its file.
pub fn failed(clock: IssueClock<'_>, error: &io::Error) -> Issued {
    let now = clock.issue();
    Issued { issued: now, completed: now, result: -1, errno: error.raw_os_error().unwrap_or(libc::EIO) }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
