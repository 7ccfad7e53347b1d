//! The loop's thread: chooses the loop's parts (target, way of waiting) by the options, and runs it.

use std::fs::File;
use std::io;
use std::sync::{Arc, mpsc};

use iosonar_trace::Nanos;
use rtrb::{Consumer, Producer};

use crate::address::placement::Geometry;
use crate::config::issuing::Wait;
use crate::config::method::Engine;
use crate::config::options::Options;
use crate::engine::Target;
use crate::engine::choice::Chosen;
use crate::error::Result;
use crate::host::isolation::{Isolation, wake_up_first};
use crate::issuer::{
    BlockingWait, Hybrid, Idle, IssueRules, Issuer, IssuerParts, LoopCounters, Rereader, Sleep, Spin, StallMonitor,
    Stop,
};
use crate::pipeline::buffers::{Arena, Pool};
use crate::pipeline::inline_stages::{InlineIdle, InlineStages};
use crate::pipeline::io::{CompletedIo, PreparedIo};
use crate::pipeline::prepare::PrepareOutcome;
use crate::result::completion_log::{Progress, Recorded};
use crate::schedule::clock::Monotonic;
use crate::verify::Verify;
use crate::verify::checker::Checker;
use crate::verify::final_pass::{FinalPass, FinalPassOutcome};

/// A sleeping loop wakes up that long before a deadline: more than waking takes on an idle machine, most of the time.
pub const WAKE_MARGIN: Nanos = Nanos(100_000);

/// What the loop says when it is ready.
pub struct Told {
    /// What does the I/O.
    pub engine: Engine,
    /// What the user should know about it.
    pub warnings: Vec<String>,
}

/// What lets the loop begin.
pub struct Start<'a> {
    pub clock: Monotonic,
    /// The other stages, if the loop runs them inline.
    pub inline_stages: Option<InlineStages<'a, Monotonic>>,
}

/// What the loop ended with.
pub struct Looped {
    /// Its own counts.
    pub counters: LoopCounters,
    /// The error that ended it early, if one did.
    pub outcome: io::Result<()>,
    /// What the target has to say beyond what it said before.
    pub warnings: Vec<String>,
    /// Results of the other stages, if the loop ran them inline.
    pub stages: Option<(PrepareOutcome, Recorded)>,
}

/// The thread of the issuing loop.
pub struct IssuerThread<'a> {
    pub options: &'a Options,
    /// What was arranged on the machine for the loop.
    pub isolation: Option<&'a Isolation>,
    /// The run's targets, open and claimed.
    pub files: Vec<File>,
    pub rules: IssueRules,
    pub arena: Arc<Arena>,
    pub stop: &'a Stop,
    pub stall_monitor: StallMonitor<'a>,
    pub input: Consumer<PreparedIo>,
    pub output: Producer<CompletedIo>,
    /// The run's number, if what it writes is checked.
    pub run: Option<u64>,
    pub geometries: &'a [Geometry],
    pub progress: &'a Progress,
}

/// What the last pass needs, when everything else has ended.
pub type LastWork = (Checker, Pool);

/// What follows on the loop.
pub struct After {
    /// Is told how it ended.
    pub ended: mpsc::Sender<Looped>,
    /// What comes by this then is the last pass.
    pub asked: mpsc::Receiver<LastWork>,
}

impl<'a> IssuerThread<'a> {
    /// Sets the target up, tells by `ready` what the user should know of it, and waits for `started`: locking and
    /// registering buffers takes longer than any grace on a busy machine, so only then may the run's own time begin.
    /// Returns the end of the last pass, if `after` asks for one.
    pub fn run(
        mut self,
        ready: &mpsc::Sender<Told>,
        started: &mpsc::Receiver<Start<'a>>,
        after: &After,
    ) -> Result<Option<FinalPassOutcome>> {
        let (files, arena) = (std::mem::take(&mut self.files), Arc::clone(&self.arena));
        Ok(match self.options.method.target(files, arena, self.rules.limits.slots(), self.options.modes.seed)? {
            Chosen::Uring(target) => {
                let told = Told { engine: Engine::IoUring, warnings: target.warnings() };
                self.drive(*target, told, ready, started, after)
            }
            Chosen::Other { engine, target, warning } => {
                let warnings = warning.into_iter().chain(target.warnings()).collect();
                self.drive(target, Told { engine, warnings }, ready, started, after)
            }
        })
    }

    fn drive<T: Target>(
        self,
        target: T,
        told: Told,
        ready: &mpsc::Sender<Told>,
        started: &mpsc::Receiver<Start<'a>>,
        after: &After,
    ) -> Option<FinalPassOutcome> {
        lock_memory();
        if let Some(isolation) = self.isolation {
            isolation.enter();
        }
        if matches!(self.options.wait(), Wait::Hybrid | Wait::Sleep) {
            wake_up_first();
        }
        let before = told.warnings.clone();
        let _ = ready.send(told);
        let Start { clock, inline_stages } = started.recv().expect("whoever waits for us starts us");
        if let Some(inline_stages) = inline_stages {
            let finish = |work: InlineIdle<'_, _, _>| Some(work.stages.finish());
            return self.issue(
                clock,
                target,
                InlineIdle { stages: inline_stages, idle: BlockingWait },
                finish,
                &before,
                after,
            );
        }
        match self.options.wait() {
            Wait::Spin | Wait::Inline => self.issue(clock, target, Spin, |_| None, &before, after),
            Wait::Sleep => self.issue(clock, target, Sleep, |_| None, &before, after),
            Wait::Hybrid => self.issue(clock, target, Hybrid { margin: WAKE_MARGIN }, |_| None, &before, after),
        }
    }

    fn issue<T: Target, I: Idle<T>>(
        self,
        clock: Monotonic,
        target: T,
        idle: I,
        finish: impl FnOnce(I) -> Option<(PrepareOutcome, Recorded)>,
        before: &[String],
        after: &After,
    ) -> Option<FinalPassOutcome> {
        let Self { options, rules, stop, stall_monitor, input, output, run, geometries, progress, arena, .. } = self;
        let rereader =
            run.filter(|_| options.verification.verify >= Verify::Paranoia).map(|run| Rereader { arena, run });
        let parts = IssuerParts { clock, target, idle, rules, stop, input, output, stall_monitor, rereader };
        let (counters, mut target, idle, outcome) = Issuer::new(parts).run();
        let stages = finish(idle);
        let warnings = target.warnings().into_iter().filter(|warning| !before.contains(warning)).collect();
        let _ = after.ended.send(Looped { counters, outcome, warnings, stages });
        let (mut checker, mut pool) = after.asked.recv().ok()?;
        let pass = FinalPass::new(&mut checker, &mut pool, geometries);
        let (reached, warning) = pass.run(&mut target, &clock, stop, &|reached| progress.verified(&reached));
        Some(FinalPassOutcome { checker, progress: reached, warning })
    }
}

/// Nothing that the loop touches may have to be fetched first. Where the limit does not allow it, it is not so.
#[allow(unsafe_code, reason = "a system call without arguments that could be wrong")]
pub fn lock_memory() {
    // SAFETY: changes only whether pages are resident.
    unsafe { libc::mlockall(libc::MCL_CURRENT) };
}
