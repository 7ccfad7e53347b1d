//! Leader and followers: one thread at a time has the lead, and with it the schedule.
//!
//! The leader waits until the next call is due, takes it, gives up the lead, and issues the call itself: no call changes
//! threads between its time and its issue. A thread whose call has completed takes the lead again if it is free; otherwise
//! it leaves the completion in a queue, which the leader empties. No other thread needs to be awake while calls are short. If
//! the next call would be due while a long call is executed, the leader wakes a follower first; how long a call takes is known
//! from earlier calls of its kind. If a call takes long for the first time, a sentinel, a follower that wakes up now and then,
//! takes the lead. With three or more processors, a follower spins instead, and takes it at once.
//!
//! ```text
//!            takes a due call,                          takes the lead again, or leaves
//!   leader ── gives up the lead ──▶ issues the call ──▶ the completion to the leader ──▶ follower
//!     ▲                                                                                    │
//!     └────────────────────── the lead is free, and calls will be due ─────────────────────┘
//! ```
#![allow(unsafe_code, reason = "the lead is a lock around the core, which is handed from thread to thread")]

mod options;
mod outcome;
mod sleeper;

use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use iosonar_pacing::Stop;
use iosonar_pacing::buffers::Arena;
use iosonar_pacing::clock::{Clock, Monotonic};
use iosonar_pacing::host::isolation::Isolation;
use iosonar_pacing::idle::{Hybrid, Idle, Sleep, Spin};
use iosonar_pacing::in_flight::MAX_LOOPS;
use iosonar_pacing::progress::Progress;
use iosonar_pacing::wait::Wait;
use iosonar_trace::Nanos;

use super::core::{Core, Step};
use super::descriptors::close;
use super::job::{Completion, Job};
use super::stalls::Heartbeat;
pub use options::WorkerOptions;
use sleeper::{NONE, Sleeper};

use crate::Family;
use crate::replay::devices::Devices;
use crate::replay::execute::Executor;
use crate::replay::locks::Locks;
use crate::replay::root::Root;
use crate::replay::scratch::{PathBuffer, Scratch};
use crate::replay::timed::IssueClock;

/// A call that takes longer than it takes to wake a thread.
const LONG: Nanos = Nanos(15_000);
/// How often the sentinel looks.
const LOOK: Duration = Duration::from_micros(250);
/// The leader wakes up this long before a call is due, with `--wait hybrid`.
const MARGIN: Nanos = Nanos(100_000);

const FREE: usize = 0;
const HELD: usize = 1;
/// Reserved for a thread: its number is added.
const RESERVED: usize = 2;
const NOT_ISSUED: i64 = i64::MIN;

/// What the threads of an instance share.
pub struct Workers {
    lead: AtomicUsize,
    core: UnsafeCell<Core>,
    completed: ArrayQueue<Completion>,
    /// Threads that wait, the last one first.
    idle: Mutex<Vec<u32>>,
    threads: Vec<OnceLock<Thread>>,
    /// When the lead was given up: the time of the next call.
    next_at: AtomicI64,
    sentinel: AtomicU32,
    /// A follower that spins.
    hot: AtomicU32,
    has_hot: bool,
    /// When each thread issued its call, in ns; [`NOT_ISSUED`] before.
    issued: Vec<AtomicI64>,
    /// The leader, while it sleeps.
    sleeper: AtomicU32,
    ended: AtomicBool,
    stop: Arc<Stop>,
    clock: Monotonic,
    root: Root,
    arena: Arc<Arena>,
    locks: Locks,
    wait: Wait,
    devices: Option<Arc<Devices>>,
    no_cache: bool,
    announces: bool,
    lacks_descriptors: AtomicBool,
    max_in_flight: AtomicU32,
    lost_ns: AtomicI64,
    heartbeat: Arc<Heartbeat>,
    isolation: Option<Arc<Isolation>>,
    progress: Arc<Progress>,
    /// Its place in the numbers in flight; instances beyond the last share one.
    number: usize,
    error: Mutex<Option<io::Error>>,
}

// SAFETY: only the thread that has changed `lead` from `FREE`, or from its own reservation, to `HELD` accesses the core,
// until it changes `lead` again.
unsafe impl Sync for Workers {}

impl Workers {
    /// A workers that has not begun.
    pub fn new(core: Core, options: WorkerOptions) -> Self {
        let WorkerOptions {
            stop,
            clock,
            root,
            arena,
            wait,
            workers,
            devices,
            no_cache,
            heartbeat,
            isolation,
            progress,
            number,
        } = options;
        let announces = core.rules().announces;
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            lead: AtomicUsize::new(FREE),
            core: UnsafeCell::new(core),
            completed: ArrayQueue::new(workers + 1),
            idle: Mutex::new(Vec::with_capacity(workers)),
            threads: (0..workers).map(|_| OnceLock::new()).collect(),
            next_at: AtomicI64::new(i64::MIN),
            sentinel: AtomicU32::new(NONE),
            hot: AtomicU32::new(NONE),
            has_hot: processors >= 3 && wait == Wait::Spin,
            issued: (0..workers).map(|_| AtomicI64::new(NOT_ISSUED)).collect(),
            sleeper: AtomicU32::new(NONE),
            ended: AtomicBool::new(false),
            locks: Locks::new(Arc::clone(&stop)),
            stop,
            clock,
            root,
            arena,
            wait,
            devices,
            no_cache,
            announces,
            lacks_descriptors: AtomicBool::new(false),
            max_in_flight: AtomicU32::new(0),
            lost_ns: AtomicI64::new(0),
            heartbeat,
            isolation,
            progress,
            number: number.min(MAX_LOOPS - 1),
            error: Mutex::new(None),
        }
    }

    /// Works as a thread of the workers until the replay has ended.
    pub fn work(&self, me: u32) {
        let _ = self.threads[me as usize].set(thread::current());
        // SAFETY: about this thread alone: it wakes up on time.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        if let Some(isolation) = &self.isolation {
            isolation.enter();
        }
        if let Err(error) = self.root.enter() {
            self.fail(error);
            return;
        }
        let mut executor = Executor {
            root: &self.root,
            clock: IssueClock { clock: self.clock, announced: self.announces.then(|| &self.issued[me as usize]) },
            arena: &self.arena,
            scratch: Scratch::default(),
            path: PathBuffer::default(),
            path2: PathBuffer::default(),
            locks: &self.locks,
            devices: self.devices.as_deref(),
        };
        let mut completion = None;
        while !self.ended.load(Ordering::Acquire) {
            if self.take_lead(me) {
                // SAFETY: this thread has the lead.
                let core = unsafe { &mut *self.core.get() };
                if let Some(completion) = completion.take() {
                    core.complete(completion, self.clock.now());
                }
                match self.lead(core, me) {
                    Some(job) => completion = Some(self.issue(&mut executor, job)),
                    None => self.follow(me),
                }
                continue;
            }
            if let Some(completion) = completion.take() {
                self.completed.push(completion).expect("each thread has at most one");
                self.wake_sleeper();
                if self.lead.load(Ordering::SeqCst) == FREE {
                    continue;
                }
            }
            self.follow(me);
        }
    }

    fn take_lead(&self, me: u32) -> bool {
        let change = |from| self.lead.compare_exchange(from, HELD, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        change(FREE) || change(RESERVED + me as usize)
    }

    /// Leads until a call is due, which is returned after the lead was given up; or until nothing can be done.
    fn lead(&self, core: &mut Core, me: u32) -> Option<Job> {
        loop {
            while let Some(completion) = self.completed.pop() {
                core.complete(completion, self.clock.now());
            }
            if self.stop.is_requested() {
                core.stop();
                if self.stop.is_abort() {
                    self.end(core);
                    return None;
                }
            }
            if core.lacks_descriptors() {
                core.stop();
            }
            let now = self.clock.now();
            if core.awaits_issue() {
                core.hear(now, |thread| self.announced(thread));
            }
            let found = core.find(me, now);
            self.progress.in_flight.of(self.number).store(core.in_flight() as u32, Ordering::Relaxed);
            match found {
                Step::Job(job) => {
                    self.issued[me as usize].store(NOT_ISSUED, Ordering::Relaxed);
                    self.leave_to_others(core, me, &job, now);
                    return Some(job);
                }
                Step::Other(other) => {
                    self.lead.store(RESERVED + other as usize, Ordering::SeqCst);
                    self.wake(other);
                    return None;
                }
                // A thread is about to announce the issue of its call, which others wait for.
                Step::WaitUntil(_) | Step::WaitForInput | Step::WaitForCalls if core.awaits_issue() => {
                    thread::yield_now()
                }
                Step::WaitUntil(at) => self.idle(at - now, me),
                Step::WaitForInput => core.rules().pause(|time| self.sleeper(me).sleep(time)),
                Step::WaitForCalls => {
                    self.locks.block_all(Some(core.in_flight()));
                    self.next_at.store(i64::MAX, Ordering::SeqCst);
                    self.lead.store(FREE, Ordering::SeqCst);
                    // A call may have completed in between, and its thread seen a leader.
                    if self.completed.is_empty() || !self.take_lead(me) {
                        return None;
                    }
                }
                Step::Finished => {
                    self.end(core);
                    return None;
                }
            }
        }
    }

    /// Gives up the lead before a call is issued, and wakes a follower if it will be needed meanwhile.
    fn leave_to_others(&self, core: &mut Core, me: u32, job: &Job, now: Nanos) {
        loop {
            let next_at = core.next_at(now);
            let expected = core.expected_duration(job.action.kind);
            let owner = core.next_worker();
            let is_needed = next_at < now + expected && expected > LONG && next_at != Nanos::MAX;
            let others_wait = next_at == Nanos::MAX || core.is_full();
            self.locks.block_all(others_wait.then(|| core.in_flight()));
            self.next_at.store(next_at.0, Ordering::SeqCst);
            match owner.filter(|&owner| owner != me) {
                Some(owner) => {
                    self.lead.store(RESERVED + owner as usize, Ordering::SeqCst);
                    self.wake(owner);
                    return;
                }
                None => self.lead.store(FREE, Ordering::SeqCst),
            }
            if is_needed && owner.is_none() {
                self.wake_one();
            }
            if self.completed.is_empty() || !self.take_lead(me) {
                return;
            }
            while let Some(completion) = self.completed.pop() {
                core.complete(completion, self.clock.now());
            }
        }
    }

    fn announced(&self, thread: u32) -> Option<Nanos> {
        Some(self.issued[thread as usize].load(Ordering::Acquire)).filter(|&at| at != NOT_ISSUED).map(Nanos)
    }

    fn issue(&self, executor: &mut Executor<'_>, job: Job) -> Completion {
        let Job { slot, action, to, closes, is_left_out } = job;
        let issued = if is_left_out {
            let now = self.clock.now();
            crate::replay::timed::Issued { issued: now, completed: now, result: 0, errno: 0 }
        } else {
            executor.execute(&action, to)
        };
        closes.into_iter().for_each(close);
        if action.kind.family() == Family::Open && issued.result >= 0 {
            let fd = issued.result as i32;
            if self.no_cache {
                // SAFETY: about an open descriptor; the kernel ignores what it cannot do.
                unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED) };
            }
            if action.makes.is_none() {
                close(fd);
            }
        }
        let stalled = self.heartbeat.stood_still(issued.issued, issued.completed);
        self.heartbeat.beat(issued.completed);
        Completion { slot, action, issued, is_left_out, stalled }
    }

    /// Waits, at most `left`, with the lead.
    fn idle(&self, left: Nanos, me: u32) {
        let mut sleeper = self.sleeper(me);
        // Errors of waiting end nothing: the loop looks again.
        let _ = match self.wait {
            Wait::Spin | Wait::Inline => Idle::<Sleeper<'_>>::idle(&mut Spin, left, &mut sleeper),
            Wait::Hybrid => Hybrid { margin: MARGIN }.idle(left, &mut sleeper),
            Wait::Sleep => Sleep.idle(left, &mut sleeper),
        };
    }

    /// Waits without the lead, until it is needed.
    fn follow(&self, me: u32) {
        let is_hot = self.has_hot && self.hot.compare_exchange(NONE, me, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        let is_sentinel =
            !is_hot && self.sentinel.compare_exchange(NONE, me, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        self.idle_threads().push(me);
        loop {
            let lead = self.lead.load(Ordering::SeqCst);
            let is_wanted = match lead {
                FREE => !self.completed.is_empty() || (is_hot || is_sentinel) && self.is_due(),
                HELD => false,
                reserved => reserved == RESERVED + me as usize,
            };
            if is_wanted || self.ended.load(Ordering::Acquire) {
                break;
            }
            if is_hot {
                std::hint::spin_loop();
                continue;
            }
            if is_sentinel {
                thread::park_timeout(LOOK)
            } else {
                thread::park()
            }
            // Woken by name: it is no longer in the list.
            if !self.idle_threads().contains(&me) {
                break;
            }
        }
        self.idle_threads().retain(|&other| other != me);
        if is_hot {
            self.hot.store(NONE, Ordering::SeqCst);
        }
        if is_sentinel {
            self.sentinel.store(NONE, Ordering::SeqCst);
        }
        // Another thread takes over the watch.
        if is_hot || is_sentinel {
            self.wake_one();
        }
    }

    fn is_due(&self) -> bool {
        let next_at = self.next_at.load(Ordering::SeqCst);
        next_at != i64::MAX && next_at <= self.clock.now().0
    }

    fn idle_threads(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_one(&self) {
        let last = self.idle_threads().pop();
        if let Some(other) = last {
            self.wake(other);
        }
    }

    fn wake(&self, other: u32) {
        if let Some(thread) = self.threads[other as usize].get() {
            thread.unpark();
        }
    }

    fn wake_sleeper(&self) {
        let sleeper = self.sleeper.load(Ordering::SeqCst);
        if sleeper != NONE {
            self.wake(sleeper);
        }
    }

    fn end(&self, core: &mut Core) {
        core.abandon();
        self.lacks_descriptors.store(core.lacks_descriptors(), Ordering::Relaxed);
        self.max_in_flight.store(core.max_in_flight() as u32, Ordering::Relaxed);
        self.lost_ns.store(core.idle().0, Ordering::Relaxed);
        self.ended.store(true, Ordering::Release);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.threads.iter().filter_map(OnceLock::get).for_each(Thread::unpark);
    }

    fn sleeper(&self, me: u32) -> Sleeper<'_> {
        Sleeper { sleeper: &self.sleeper, completed: &self.completed, me }
    }

    fn fail(&self, error: io::Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.drain();
        // No thread may be left to lead.
        self.ended.store(true, Ordering::Release);
        self.wake_all();
    }

    /// Whether all is over.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends a replay whose threads all wait for the kernel, after an abort. Returns whether it is over.
    pub fn try_end(&self) -> bool {
        if !self.has_ended() && self.lead.compare_exchange(FREE, HELD, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            // SAFETY: this thread has the lead, and keeps it.
            self.end(unsafe { &mut *self.core.get() });
        }
        self.has_ended()
    }
}
