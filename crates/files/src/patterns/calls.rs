//! The calls that a program makes, one after the other.

use std::collections::VecDeque;

use iosonar_trace::Nanos;
use iosonar_workload::Rng;
use iosonar_workload::distributions::exponential;
use rand::SeedableRng;

use crate::model::call::{Call, Name};
use crate::model::kind::CallKind;

/// The thread and process of the program.
pub const THREAD: u32 = 1;
/// The descriptor of its open file.
const FD: i32 = 3;
/// The duration of each call in the trace.
const DURATION: Nanos = Nanos(5_000);

/// Takes the calls of a program.
pub struct Calls {
    /// Random numbers of the program.
    pub rng: Rng,
    rate: f64,
    now: Nanos,
    ready: VecDeque<Call>,
}

impl Calls {
    /// No calls yet, of a program with so many reads or transactions per second.
    pub fn new(rate: f64, seed: u64) -> Self {
        Self { rng: Rng::seed_from_u64(seed), rate, now: Nanos::ZERO, ready: VecDeque::new() }
    }

    /// The next call that was made.
    pub fn pop(&mut self) -> Option<Call> {
        self.ready.pop_front()
    }

    /// Passes an exponentially distributed time, on average that between two reads or transactions.
    pub fn think(&mut self) {
        let mean = 1e9 / self.rate;
        self.now = self.now + Nanos((exponential(&mut self.rng) * mean).min(1e12) as i64);
    }

    fn push(&mut self, kind: CallKind, with: impl FnOnce(&mut Call)) {
        let mut call = Call { process: THREAD, duration: Some(DURATION), ..Call::new(self.now, THREAD, kind) };
        with(&mut call);
        self.now = self.now + DURATION;
        self.ready.push_back(call);
    }

    /// A call with a path, such as `unlink`.
    pub fn on_path(&mut self, kind: CallKind, path: &str, mode: Option<u32>) {
        self.push(kind, |call| (call.path, call.mode) = (Some(Name::from(path)), mode));
    }

    /// Opens a file, with these flags. There is one open file at a time.
    pub fn open(&mut self, path: &str, flags: i32) {
        self.push(CallKind::Openat, |call| {
            call.fd = Some(crate::AT_FDCWD);
            call.path = Some(Name::from(path));
            call.flags = flags as u64;
            call.mode = (flags & libc::O_CREAT != 0).then_some(0o644);
            call.result = Some(FD.into());
        });
    }

    /// Sets the position of the open file.
    pub fn seek(&mut self, to: i64, whence: i32, result: u64) {
        self.push(CallKind::Lseek, |call| {
            call.fd = Some(FD);
            call.offset = Some(to);
            call.flags = whence as u64;
            call.result = Some(result as i64);
        });
    }

    /// Reads or writes so many bytes of the open file.
    pub fn transfer(&mut self, kind: CallKind, length: u64) {
        self.push(kind, |call| {
            call.fd = Some(FD);
            call.length = Some(length);
            call.result = Some(length as i64);
        });
    }

    /// Closes the open file.
    pub fn close(&mut self) {
        self.push(CallKind::Close, |call| call.fd = Some(FD));
    }
}
