//! The thread of the issuing loop: creates the engine and the way of waiting that the options select, and runs the loop.

use std::fs::File;
use std::io;
use std::sync::{Arc, mpsc};

use iosonar_device::geometry::Geometry;
use iosonar_pacing::Result;
use iosonar_pacing::Stop;
use iosonar_pacing::buffers::{Arena, Pool};
use iosonar_pacing::clock::{Clock, Monotonic, Virtual};
use iosonar_pacing::host::isolation::{Isolation, request_short_time_slice};
use iosonar_pacing::idle::{BlockingWait, BusyPoll, Hybrid, Idle, Sleep, Spin};
use iosonar_pacing::progress::Progress;
use iosonar_pacing::stalls::StallMonitor;
use iosonar_pacing::wait::Wait;
use iosonar_trace::Nanos;
use rtrb::{Consumer, Producer};

use crate::config::plan::{Plan, WaitChoice};
use crate::engine::Target;
use crate::engine::choice::Chosen;
use crate::engine::method::Engine;
use crate::io::{CompletedIo, PreparedIo};
use crate::issuer::{IssueRules, Issuer, IssuerParts, LoopCounters, Rereader, SharedWith};
use crate::pipeline::prepare::PrepareOutcome;
use crate::pipeline::program::ProgramInput;
use crate::result::completion_log::CompletionLogOutput;
use crate::run::inline_stages::{InlineIdle, InlineStages, VirtualIdle};
use crate::verify::Verify;
use crate::verify::checker::Checker;
use crate::verify::final_pass::{FinalPass, FinalPassOutcome};

/// How long before a deadline a sleeping loop wakes up: on an idle machine, waking up rarely takes longer.
pub const WAKE_MARGIN: Nanos = Nanos(100_000);

/// Sent when the loop is ready to start.
pub struct LoopReady {
    pub engine: Engine,
    /// Warnings about the engine.
    pub warnings: Vec<String>,
}

/// Starts the loop.
pub enum Start<'a> {
    /// On the monotonic clock.
    Real {
        clock: Monotonic,
        /// The other stages, if the loop runs them itself.
        inline_stages: Option<InlineStages<'a, Monotonic>>,
    },
    /// In virtual time. The loop runs the other stages itself.
    Virtual(InlineStages<'a, Virtual>),
}

/// Sent when the loop has ended.
pub struct LoopResult {
    pub counters: LoopCounters,
    /// The error that ended the loop early, if any.
    pub outcome: io::Result<()>,
    /// Warnings about the engine, except those sent with [`LoopReady`].
    pub warnings: Vec<String>,
    /// The results of the other stages, if the loop ran them.
    pub inline_results: Option<(PrepareOutcome, CompletionLogOutput)>,
}

/// Everything that the issuer thread needs.
pub struct IssuerThread<'a> {
    pub plan: &'a Plan,
    /// What it shares with other loops.
    pub sharing: SharedWith,
    /// The clock, with `--virtual-time`.
    pub virtual_clock: Option<Virtual>,
    pub isolation: Option<&'a Isolation>,
    /// The open and claimed targets.
    pub files: Vec<File>,
    pub rules: IssueRules,
    pub arena: Arc<Arena>,
    pub stop: &'a Stop,
    pub stall_monitor: StallMonitor<'a>,
    pub input: Consumer<PreparedIo>,
    pub output: Producer<CompletedIo>,
    pub program: Option<Box<ProgramInput>>,
    /// The run's number in block headers, with verification.
    pub run: Option<u64>,
    pub geometries: &'a [Geometry],
    pub progress: &'a Progress,
}

/// The input of the final pass, available when all other stages have ended.
pub type FinalPassInput = (Checker, Pool);

/// Channels used once the loop has ended.
pub struct EndChannels {
    /// Receives the loop's result.
    pub result: mpsc::Sender<LoopResult>,
    /// Delivers the input of the final pass, to one loop. A closed channel means that there is none.
    pub final_pass: mpsc::Receiver<FinalPassInput>,
}

impl<'a> IssuerThread<'a> {
    /// Sets up the engine, sends `ready`, waits for `start` and runs the loop. Locking and registering buffers can take longer
    /// than any grace period on a busy machine, so the run's clock starts only after that. Returns the result of the final
    /// pass, if `end` asks for one.
    pub fn run(
        mut self,
        ready: &mpsc::Sender<LoopReady>,
        start: &mpsc::Receiver<Start<'a>>,
        end: &EndChannels,
    ) -> Result<Option<FinalPassOutcome>> {
        let (slots, seed) = (self.rules.limits.slots(), *self.plan.options.pacing.seed);
        if let Some(clock) = self.virtual_clock.take() {
            let target = self.plan.options.method.simulated(clock.clone(), slots, seed)?;
            let _ = ready.send(LoopReady { engine: Engine::Simulate, warnings: Vec::new() });
            let Ok(Start::Virtual(stages)) = start.recv() else { return Ok(None) };
            let finish = |idle: VirtualIdle<'_>| Some(idle.stages.finish());
            return Ok(self.issue(clock, target, VirtualIdle { stages }, finish, &[], end));
        }
        let (files, arena) = (std::mem::take(&mut self.files), Arc::clone(&self.arena));
        Ok(match self.plan.options.method.target(files, arena, slots, self.plan.issuers, seed)? {
            Chosen::Uring(target) => {
                let loop_ready = LoopReady { engine: Engine::IoUring, warnings: target.warnings() };
                self.drive(*target, loop_ready, ready, start, end)
            }
            Chosen::Other { engine, target, warning } => {
                let warnings = warning.into_iter().chain(target.warnings()).collect();
                self.drive(target, LoopReady { engine, warnings }, ready, start, end)
            }
        })
    }

    fn drive<T: Target>(
        self,
        target: T,
        loop_ready: LoopReady,
        ready: &mpsc::Sender<LoopReady>,
        start: &mpsc::Receiver<Start<'a>>,
        end: &EndChannels,
    ) -> Option<FinalPassOutcome> {
        lock_memory();
        if let Some(isolation) = self.isolation {
            isolation.enter();
        }
        let WaitChoice { wait, busy_poll } = self.plan.waiting;
        if matches!(wait, Wait::Hybrid | Wait::Sleep) {
            request_short_time_slice();
        }
        let known = loop_ready.warnings.clone();
        let _ = ready.send(loop_ready);
        // Without a start, the run ends before any I/O.
        let Ok(Start::Real { clock, inline_stages }) = start.recv() else { return None };
        if let Some(stages) = inline_stages {
            let finish = |idle: InlineIdle<'_, _, _>| Some(idle.stages.finish());
            let idle = InlineIdle { stages, idle: BusyPoll::new(BlockingWait, busy_poll) };
            return self.issue(clock, target, idle, finish, &known, end);
        }
        match wait {
            Wait::Spin | Wait::Inline => self.issue(clock, target, Spin, |_| None, &known, end),
            Wait::Sleep => self.issue(clock, target, BusyPoll::new(Sleep, busy_poll), |_| None, &known, end),
            Wait::Hybrid => {
                let idle = BusyPoll::new(Hybrid { margin: WAKE_MARGIN }, busy_poll);
                self.issue(clock, target, idle, |_| None, &known, end)
            }
        }
    }

    fn issue<C: Clock + Clone, T: Target, I: Idle<T>>(
        self,
        clock: C,
        target: T,
        idle: I,
        finish: impl FnOnce(I) -> Option<(PrepareOutcome, CompletionLogOutput)>,
        known: &[String],
        end: &EndChannels,
    ) -> Option<FinalPassOutcome> {
        let Self { plan, sharing, rules, stop, stall_monitor, input, output, program, run, geometries, .. } = self;
        let (progress, arena) = (self.progress, self.arena);
        let rereader =
            run.filter(|_| plan.options.verification.verify >= Verify::Paranoia).map(|run| Rereader { arena, run });
        let final_clock = clock.clone();
        let parts = IssuerParts { clock, target, idle, rules, stop, input, output, stall_monitor, rereader, program };
        let (counters, mut target, idle, outcome) = Issuer::new(parts).sharing(sharing).run();
        if outcome.is_err() && plan.issuers > 1 {
            // The others may wait for requests of this loop.
            stop.drain();
        }
        let inline_results = finish(idle);
        let warnings = target.warnings().into_iter().filter(|warning| !known.contains(warning)).collect();
        let _ = end.result.send(LoopResult { counters, outcome, warnings, inline_results });
        let (mut checker, mut pool) = end.final_pass.recv().ok()?;
        let pass = FinalPass::new(&mut checker, &mut pool, geometries);
        let (reached, warning) = pass.run(&mut target, &final_clock, stop, &|reached| {
            progress.set_final_pass(reached.checked + reached.errors, reached.mismatches, reached.known);
        });
        Some(FinalPassOutcome { checker, progress: reached, warning })
    }
}

/// Locks all pages in memory, so that the loop has no page faults. Without effect if RLIMIT_MEMLOCK is too low.
#[allow(unsafe_code, reason = "a system call without pointers")]
pub fn lock_memory() {
    // SAFETY: changes only whether pages are resident.
    unsafe { libc::mlockall(libc::MCL_CURRENT) };
}
