//! A pool of threads, each of which does one request at a time with a blocking system call: the method of the manual, and
//! what is left where there is no io_uring.
//!
//! ```text
//!            calls                          one system call each                    completions
//!  loop ──▶ [queue] ──▶ worker, worker, worker … ──▶ preadv, pwritev2, fdatasync … ──▶ [queue] ──▶ loop
//!              └─ doorbell: wakes as many sleepers as calls came
//! ```
//!
//! The loop never waits for a worker: both queues are bounded and lock-free, and have room for all that can be in flight.
//! It enters the kernel once for each batch, and only if a worker sleeps. The pool begins small and grows ahead of the
//! need, by a thread of its own, because making threads takes far longer than a request may be late.
#![allow(unsafe_code, reason = "workers hand the kernel addresses; see `calls`")]

use std::fs::{self, File};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use iosonar_trace::Nanos;
use rustix::thread::futex;

use super::calls::{Call, Place};
use super::{Completion, Io, Target};
use crate::pipeline::buffers::Arena;

/// The most threads, unless more are asked for.
pub const MOST_THREADS: usize = 512;
/// Threads at the beginning.
const FIRST_THREADS: usize = 32;
/// Where the system gives no more threads, so many are given back, for the rest of the program.
const SPARE_THREADS: usize = 6;
/// How long the kernel may take to release threads that have ended.
const RELEASED_WITHIN: Duration = Duration::from_secs(1);
/// A worker makes one system call: little of this is ever touched.
const STACK_BYTES: usize = 64 << 10;

/// What the loop and its workers share.
struct Shop {
    calls: ArrayQueue<Call>,
    /// Grows with every batch, so that no worker goes to sleep over one that it did not see.
    doorbell: AtomicU32,
    sleepers: AtomicU32,
    closed: AtomicBool,
    /// Threads that there are, and that there should be.
    threads: AtomicUsize,
    wanted: AtomicUsize,
    /// Why there cannot be more, if so.
    refusal: AtomicU32,
    /// Threads that are to go.
    leavers: AtomicUsize,
    places: Vec<Place>,
    // What the kernel works on lives as long as anyone who may ask it to.
    _files: Vec<File>,
    _arena: Arc<Arena>,
}

/// A pool of threads over all targets of a run.
pub struct Threads {
    shop: Arc<Shop>,
    arena: Arc<Arena>,
    completions: Receiver<Completion>,
    /// One that came while the loop slept.
    early: Option<Completion>,
    staged: Vec<Call>,
    in_flight: usize,
    limit: usize,
    /// Batches in which a request found no free thread, the pool being as large as it may be.
    crowded: u64,
    foreman: Option<JoinHandle<Vec<JoinHandle<()>>>>,
}

impl Threads {
    /// Over these files, for at most `slots` requests in flight whose buffers lie in `arena`, with at most `limit` threads.
    pub fn new(files: Vec<File>, arena: Arc<Arena>, slots: usize, limit: usize) -> io::Result<Self> {
        let limit = limit.clamp(1, slots);
        let beginning = limit.min(FIRST_THREADS);
        let shop = Arc::new(Shop {
            calls: ArrayQueue::new(slots),
            doorbell: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            threads: AtomicUsize::new(0),
            wanted: AtomicUsize::new(beginning),
            refusal: AtomicU32::new(0),
            leavers: AtomicUsize::new(0),
            places: Place::of(&files)?,
            _files: files,
            _arena: Arc::clone(&arena),
        });
        let (through, completions) = mpsc::sync_channel(slots);
        let first = worker(&shop, &through)?;
        let foreman = {
            let shop = Arc::clone(&shop);
            thread::Builder::new().name("foreman".into()).stack_size(STACK_BYTES).spawn(move || {
                let mut workers = vec![first];
                hire(&shop, &through, &mut workers);
                workers
            })?
        };
        // The first requests shall not meet an empty shop.
        while shop.threads.load(Ordering::Acquire) < beginning && shop.refusal.load(Ordering::Acquire) == 0 {
            thread::sleep(Duration::from_micros(100));
        }
        if shop.refusal.load(Ordering::Acquire) != 0 {
            shop.shrink_by(SPARE_THREADS)?;
        }
        Ok(Self {
            shop,
            arena,
            completions,
            early: None,
            staged: Vec::with_capacity(slots),
            in_flight: 0,
            limit,
            crowded: 0,
            foreman: Some(foreman),
        })
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.shop.threads.load(Ordering::Relaxed)
    }

    /// Asks for more threads while some are still free.
    #[inline]
    fn grow(&mut self) {
        let threads = self.threads();
        if self.in_flight > self.limit {
            self.crowded += 1;
        }
        if self.in_flight * 2 <= threads || threads >= self.limit {
            return;
        }
        let wanted = (self.in_flight * 3).min(self.limit);
        if self.shop.wanted.load(Ordering::Relaxed) < wanted {
            self.shop.wanted.store(wanted, Ordering::Release);
            if let Some(foreman) = &self.foreman {
                foreman.thread().unpark();
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
            let pushed = self.shop.calls.push(call);
            assert!(pushed.is_ok(), "there is room for all that can be in flight");
        }
        self.shop.doorbell.fetch_add(1, Ordering::SeqCst);
        if self.shop.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake(&self.shop.doorbell, futex::Flags::PRIVATE, count)?;
        }
        self.grow();
        Ok(())
    }

    #[inline]
    fn reap(&mut self) -> Option<Completion> {
        let completion = self.early.take().or_else(|| self.completions.try_recv().ok())?;
        self.in_flight -= 1;
        Some(completion)
    }

    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        if self.early.is_none() {
            self.early = self.completions.recv_timeout(Duration::from_nanos(timeout.0.max(0) as u64)).ok();
        }
        Ok(())
    }

    fn remarks(&self) -> Vec<String> {
        let mut all = Vec::new();
        let refusal = self.shop.refusal.load(Ordering::Relaxed);
        if refusal != 0 {
            all.push(format!(
                "the system gave no more than {} threads ({}): raise the limit on processes (ulimit -u), or lower --depth",
                self.threads(),
                io::Error::from_raw_os_error(refusal as i32)
            ));
        }
        if self.crowded > 0 {
            all.push(format!(
                "more requests were in flight than there may be threads ({}), {} times: some waited for a free one, which \
                 counts as latency; raise --workers, or lower --depth",
                self.limit, self.crowded
            ));
        }
        all
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shop.closed.store(true, Ordering::SeqCst);
        self.shop.doorbell.fetch_add(1, Ordering::SeqCst);
        // Nobody can be told of an error; there is none but a wrong address.
        let _ = futex::wake(&self.shop.doorbell, futex::Flags::PRIVATE, i32::MAX as u32);
        let Some(foreman) = self.foreman.take() else { return };
        foreman.thread().unpark();
        if self.in_flight > 0 {
            // Someone hangs in a device: he keeps what he works on, and is not waited for.
            return;
        }
        for worker in foreman.join().unwrap_or_default() {
            // A panic was shown when it happened.
            let _ = worker.join();
        }
    }
}

impl Shop {
    /// Lets so many threads go, but not the last one, and waits until they have. Only while nothing is to be done.
    fn shrink_by(&self, leavers: usize) -> io::Result<()> {
        let threads = self.threads.load(Ordering::Acquire);
        let left = threads - leavers.min(threads - 1);
        let tasks_left = tasks()? - (threads - left);
        self.leavers.store(threads - left, Ordering::SeqCst);
        self.doorbell.fetch_add(1, Ordering::SeqCst);
        futex::wake(&self.doorbell, futex::Flags::PRIVATE, i32::MAX as u32)?;
        // A thread counts against the limit until the kernel has released it, a moment after its last instruction.
        let until = Instant::now() + RELEASED_WITHIN;
        while self.threads.load(Ordering::Acquire) > left || (tasks()? > tasks_left && Instant::now() < until) {
            thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    /// Whether the thread that asks is to go.
    fn lets_go(&self) -> bool {
        let one_less = |n: usize| n.checked_sub(1);
        self.leavers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
    }
}

/// The foreman's work: makes threads until there are as many as wanted, and again when more are.
fn hire(shop: &Arc<Shop>, through: &SyncSender<Completion>, workers: &mut Vec<JoinHandle<()>>) {
    while !shop.closed.load(Ordering::SeqCst) {
        if workers.len() >= shop.wanted.load(Ordering::Acquire) || shop.refusal.load(Ordering::Relaxed) != 0 {
            thread::park();
            continue;
        }
        match worker(shop, through) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                shop.refusal.store(error.raw_os_error().unwrap_or(libc::EAGAIN) as u32, Ordering::Release);
            }
        }
    }
}

/// How many threads the kernel counts for this process.
fn tasks() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/task")?.count())
}

fn worker(shop: &Arc<Shop>, through: &SyncSender<Completion>) -> io::Result<JoinHandle<()>> {
    let (mine, through) = (Arc::clone(shop), through.clone());
    let worker = thread::Builder::new().name("worker".into()).stack_size(STACK_BYTES).spawn(move || {
        while let Some(call) = next(&mine) {
            // SAFETY: the loop keeps the request's buffer token in its slot until the completion was reaped, so nobody
            // else touches those bytes; the shop keeps arena and files.
            let result = unsafe { call.perform(&mine.places) };
            // There is room for all that can be in flight. A loop that has gone wants nothing any more.
            let _ = through.try_send(Completion { slot: call.slot, result });
        }
        mine.threads.fetch_sub(1, Ordering::AcqRel);
    })?;
    shop.threads.fetch_add(1, Ordering::AcqRel);
    Ok(worker)
}

/// The next call; sleeps until there is one. `None` at the end.
fn next(shop: &Shop) -> Option<Call> {
    loop {
        let rung = shop.doorbell.load(Ordering::SeqCst);
        if let Some(call) = shop.calls.pop() {
            return Some(call);
        }
        if shop.closed.load(Ordering::SeqCst) || shop.lets_go() {
            return None;
        }
        shop.sleepers.fetch_add(1, Ordering::SeqCst);
        // Whoever rings after this look sees a sleeper; whoever rang before it has put its call there, or has changed the
        // number that the kernel compares.
        if shop.calls.is_empty() {
            // Interrupted, or rung meanwhile: the queue is looked at in any case.
            let _ = futex::wait(&shop.doorbell, futex::Flags::PRIVATE, rung, None);
        }
        shop.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
