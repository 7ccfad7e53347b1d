//! A thread pool in which each thread performs one request at a time by a blocking system call: the manual's method, and
//! the fallback where io_uring is not available.
//!
//! ```text
//!            calls                          one system call each                    completions
//!  loop ──▶ [queue] ──▶ worker, worker, worker … ──▶ preadv, pwritev2, fdatasync … ──▶ [queue] ──▶ loop
//!              └─ doorbell: wakes one sleeping worker per call
//! ```
//!
//! The loop never waits for a worker: both queues are bounded and lock-free, and hold all requests in flight. It enters
//! the kernel once per batch, and only if a worker sleeps. A spawner thread grows the pool ahead of demand, because
//! starting a thread takes much longer than a request may be delayed.
#![allow(unsafe_code, reason = "workers hand the kernel addresses; see `calls`")]

use std::fs::{self, File};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use iosonar_pacing::buffers::Arena;
use iosonar_pacing::clock::monotonic;
use iosonar_pacing::idle::Waiter;
use iosonar_trace::Nanos;
use rustix::thread::futex;

use super::calls::{Call, OpenTarget};
use super::{Completion, Io, Target};

/// Maximum number of threads, unless `--workers` gives another.
pub const MAX_THREADS: usize = 512;
/// Number of threads at the start.
const INITIAL_THREADS: usize = 32;
/// If the system refuses more threads, this many exit, to leave some for the rest of the program.
const SPARE_THREADS: usize = 6;
/// The kernel takes at most this long to release ended threads.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);
/// A worker only makes system calls, so it uses little of its stack.
const STACK_BYTES: usize = 64 << 10;

/// State shared by the loop and the workers.
struct Shared {
    calls: ArrayQueue<Call>,
    /// Incremented by every batch, so that no worker falls asleep without having seen it.
    doorbell: AtomicU32,
    sleepers: AtomicU32,
    closed: AtomicBool,
    /// Existing and desired number of threads.
    threads: AtomicUsize,
    desired: AtomicUsize,
    /// The error number of a failed thread start, else 0. No more threads are started then.
    spawn_error: AtomicU32,
    /// Number of threads that are to exit.
    exiting: AtomicUsize,
    targets: Vec<OpenTarget>,
    // Kept alive until the last worker ends, as the kernel works on them.
    _files: Vec<File>,
    _arena: Arc<Arena>,
}

/// A pool of threads for all targets of a run.
pub struct Threads {
    shared: Arc<Shared>,
    arena: Arc<Arena>,
    completions: Receiver<Completion>,
    /// A completion received while waiting.
    received: Option<Completion>,
    staged: Vec<Call>,
    in_flight: usize,
    limit: usize,
    /// Batches with more requests in flight than the maximum number of threads.
    saturated: u64,
    spawner: Option<JoinHandle<Vec<JoinHandle<()>>>>,
}

impl Threads {
    /// For these files, at most `slots` requests in flight with buffers in `arena`, and at most `limit` threads.
    pub fn new(files: Vec<File>, arena: Arc<Arena>, slots: usize, limit: usize) -> io::Result<Self> {
        let limit = limit.clamp(1, slots);
        let initial = limit.min(INITIAL_THREADS);
        let shared = Arc::new(Shared {
            calls: ArrayQueue::new(slots),
            doorbell: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            threads: AtomicUsize::new(0),
            desired: AtomicUsize::new(initial),
            spawn_error: AtomicU32::new(0),
            exiting: AtomicUsize::new(0),
            targets: OpenTarget::of(&files)?,
            _files: files,
            _arena: Arc::clone(&arena),
        });
        let (sender, completions) = mpsc::sync_channel(slots);
        let first = spawn_worker(&shared, &sender)?;
        let spawner = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("spawner".into()).stack_size(STACK_BYTES).spawn(move || {
                let mut workers = vec![first];
                spawn_workers(&shared, &sender, &mut workers);
                workers
            })?
        };
        // Waits for the first workers, so that the first requests are not delayed.
        while shared.threads.load(Ordering::Acquire) < initial && shared.spawn_error.load(Ordering::Acquire) == 0 {
            thread::sleep(Duration::from_micros(100));
        }
        if shared.spawn_error.load(Ordering::Acquire) != 0 {
            shared.shrink_by(SPARE_THREADS)?;
        }
        Ok(Self {
            shared,
            arena,
            completions,
            received: None,
            staged: Vec::with_capacity(slots),
            in_flight: 0,
            limit,
            saturated: 0,
            spawner: Some(spawner),
        })
    }

    /// Current number of threads.
    pub fn threads(&self) -> usize {
        self.shared.threads.load(Ordering::Relaxed)
    }

    /// Requests more threads before all are busy.
    #[inline]
    fn grow(&mut self) {
        let threads = self.threads();
        if self.in_flight > self.limit {
            self.saturated += 1;
        }
        if self.in_flight * 2 <= threads || threads >= self.limit {
            return;
        }
        let desired = (self.in_flight * 3).min(self.limit);
        if self.shared.desired.load(Ordering::Relaxed) < desired {
            self.shared.desired.store(desired, Ordering::Release);
            if let Some(spawner) = &self.spawner {
                spawner.thread().unpark();
            }
        }
    }
}

impl Target for Threads {
    #[inline]
    fn stage(&mut self, io: Io<'_>) {
        self.in_flight += 1;
        self.staged.push(Call::new(&io, &self.arena));
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        let count = self.staged.len() as u32;
        if count == 0 {
            return Ok(());
        }
        for call in self.staged.drain(..) {
            let pushed = self.shared.calls.push(call);
            assert!(pushed.is_ok(), "the queue holds all requests in flight");
        }
        self.shared.doorbell.fetch_add(1, Ordering::SeqCst);
        if self.shared.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake(&self.shared.doorbell, futex::Flags::PRIVATE, count)?;
        }
        self.grow();
        Ok(())
    }

    #[inline]
    fn reap(&mut self) -> Option<Completion> {
        let completion = self.received.take().or_else(|| self.completions.try_recv().ok())?;
        self.in_flight -= 1;
        Some(completion)
    }

    fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        let spawn_error = self.shared.spawn_error.load(Ordering::Relaxed);
        if spawn_error != 0 {
            all.push(format!(
                "cannot start more than {} threads ({}); raise the limit on processes (ulimit -u) or lower --depth",
                self.threads(),
                iosonar_trace::system_text(&io::Error::from_raw_os_error(spawn_error as i32))
            ));
        }
        if self.saturated > 0 {
            all.push(format!(
                "{} submissions had more requests in flight than the maximum number of threads ({}): some waited for a \
                 free thread, which counts as latency; raise --workers or lower --depth",
                self.saturated, self.limit
            ));
        }
        all
    }
}

impl Waiter for Threads {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        if self.received.is_none() {
            self.received = self.completions.recv_timeout(Duration::from_nanos(timeout.0.max(0) as u64)).ok();
        }
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.shared.doorbell.fetch_add(1, Ordering::SeqCst);
        // The only possible error is an invalid address.
        let _ = futex::wake(&self.shared.doorbell, futex::Flags::PRIVATE, i32::MAX as u32);
        let Some(spawner) = self.spawner.take() else { return };
        spawner.thread().unpark();
        if self.in_flight > 0 {
            // A request hangs in a device. Its worker keeps files and memory alive, and is not joined.
            return;
        }
        for worker in spawner.join().unwrap_or_default() {
            // A panic was printed when it occurred.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// Lets this many threads exit, except the last one, and waits for them. Only while no requests are in flight.
    fn shrink_by(&self, exiting: usize) -> io::Result<()> {
        let threads = self.threads.load(Ordering::Acquire);
        let left = threads - exiting.min(threads - 1);
        let tasks_left = tasks()? - (threads - left);
        self.exiting.store(threads - left, Ordering::SeqCst);
        self.doorbell.fetch_add(1, Ordering::SeqCst);
        futex::wake(&self.doorbell, futex::Flags::PRIVATE, i32::MAX as u32)?;
        // A thread counts against the limit until the kernel releases it, shortly after its last instruction.
        let until = Instant::now() + RELEASE_TIMEOUT;
        while self.threads.load(Ordering::Acquire) > left || (tasks()? > tasks_left && Instant::now() < until) {
            thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    /// Whether the calling worker is to exit.
    fn should_exit(&self) -> bool {
        let one_less = |n: usize| n.checked_sub(1);
        self.exiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
    }
}

/// The spawner thread: starts workers up to the desired number, which can grow.
fn spawn_workers(shared: &Arc<Shared>, sender: &SyncSender<Completion>, workers: &mut Vec<JoinHandle<()>>) {
    while !shared.closed.load(Ordering::SeqCst) {
        if workers.len() >= shared.desired.load(Ordering::Acquire) || shared.spawn_error.load(Ordering::Relaxed) != 0 {
            thread::park();
            continue;
        }
        match spawn_worker(shared, sender) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                shared.spawn_error.store(error.raw_os_error().unwrap_or(libc::EAGAIN) as u32, Ordering::Release);
            }
        }
    }
}

/// Number of threads of this process, as counted by the kernel.
fn tasks() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/task")?.count())
}

fn spawn_worker(shared: &Arc<Shared>, sender: &SyncSender<Completion>) -> io::Result<JoinHandle<()>> {
    let (own, sender) = (Arc::clone(shared), sender.clone());
    let worker = thread::Builder::new().name("worker".into()).stack_size(STACK_BYTES).spawn(move || {
        while let Some(call) = next(&own) {
            let issued = Some(monotonic());
            // SAFETY: the loop keeps the request's buffer token in its slot until the completion is reaped, so nothing
            // else accesses those bytes; `own` keeps the arena and the files alive.
            let result = unsafe { call.perform(&own.targets) };
            // The queue holds all requests in flight. If the loop has ended, the completion is not needed.
            let _ = sender.try_send(Completion { slot: call.slot, result, issued });
        }
        own.threads.fetch_sub(1, Ordering::AcqRel);
    })?;
    shared.threads.fetch_add(1, Ordering::AcqRel);
    Ok(worker)
}

/// The next call; sleeps until there is one. `None` if the worker is to exit.
fn next(shared: &Shared) -> Option<Call> {
    loop {
        let seen = shared.doorbell.load(Ordering::SeqCst);
        if let Some(call) = shared.calls.pop() {
            return Some(call);
        }
        if shared.closed.load(Ordering::SeqCst) || shared.should_exit() {
            return None;
        }
        shared.sleepers.fetch_add(1, Ordering::SeqCst);
        // A submission after this check sees the sleeper. An earlier one has pushed its call, or has changed the doorbell
        // that the kernel compares.
        if shared.calls.is_empty() {
            // After an interruption or a wake-up, the queue is checked in any case.
            let _ = futex::wait(&shared.doorbell, futex::Flags::PRIVATE, seen, None);
        }
        shared.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
