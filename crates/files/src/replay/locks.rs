//! Waiting for locks of `flock`. Calls that all wait for locks which only later calls release would wait for ever: the trace
//! was made by hand, or its order is not the program's.
#![allow(unsafe_code, reason = "flock on a descriptor of the replay")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use iosonar_pacing::Stop;

/// How often a lock is tried, at first and in the long run.
const TRIES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(500));
/// So long another process, or another instance, may hold a lock for which all calls in flight wait.
const PATIENCE: Duration = Duration::from_secs(3);
/// No number of calls: others can go on.
const NEVER: u32 = u32::MAX;

/// Threads of an instance that wait for locks.
#[derive(Debug)]
pub struct Locks {
    waiting: AtomicU32,
    /// If so many threads wait, no call can be issued any more.
    all: AtomicU32,
    stop: Arc<Stop>,
}

impl Locks {
    /// No call waits for a lock.
    pub fn new(stop: Arc<Stop>) -> Self {
        Self { waiting: AtomicU32::new(0), all: AtomicU32::new(NEVER), stop }
    }

    /// States how many calls are in flight without which no other call can be issued; `None` if others can.
    pub fn block_all(&self, in_flight: Option<usize>) {
        self.all.store(in_flight.map_or(NEVER, |calls| calls as u32), Ordering::Relaxed);
    }

    /// `flock`. Returns 0, or -1 with `errno` set: `EDEADLK` if the replay waits only for itself.
    pub fn lock(&self, fd: i32, flags: i32) -> i32 {
        // SAFETY: about a descriptor of the replay.
        let try_it = || unsafe { libc::flock(fd, flags | libc::LOCK_NB) };
        let result = try_it();
        if result == 0 || flags & libc::LOCK_NB != 0 || errno() != libc::EWOULDBLOCK {
            return result;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = self.wait(try_it);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        if let Err(errno) = result {
            // SAFETY: about this thread.
            unsafe { *libc::__errno_location() = errno };
        }
        if result.is_ok() { 0 } else { -1 }
    }

    fn wait(&self, try_it: impl Fn() -> i32) -> Result<(), i32> {
        let (mut pause, mut stuck_since) = (TRIES.0, None);
        loop {
            thread::sleep(pause);
            pause = (pause * 2).min(TRIES.1);
            match try_it() {
                0 => return Ok(()),
                _ if errno() != libc::EWOULDBLOCK => return Err(errno()),
                _ if self.stop.is_requested() => return Err(libc::EINTR),
                _ if self.waiting.load(Ordering::Relaxed) != self.all.load(Ordering::Relaxed) => stuck_since = None,
                _ if stuck_since.get_or_insert_with(Instant::now).elapsed() > PATIENCE => return Err(libc::EDEADLK),
                _ => {}
            }
        }
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
