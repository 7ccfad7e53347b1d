//! The issuing loops of a run, each in its thread: sets them up, starts them together, and collects their results as one.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use iosonar_pacing::Result;
use iosonar_pacing::clock::{Monotonic, Virtual};

use super::issuer_thread::{EndChannels, FinalPassInput, IssuerThread, LoopReady, LoopResult, Start};
use super::stages::spawn_with_result;
use crate::run::inline_stages::InlineStages;
use crate::verify::final_pass::FinalPassOutcome;

/// The loops of a run. Dropping them before their start ends their threads.
pub struct Loops<'a>(Vec<Loop<'a>>);

/// This side of a loop's channels.
struct Loop<'a> {
    ready: Receiver<LoopReady>,
    start: Sender<Start<'a>>,
    result: Receiver<LoopResult>,
    final_pass: Sender<FinalPassInput>,
    /// What its thread returns.
    outcome: Receiver<Result<Option<FinalPassOutcome>>>,
}

impl<'a> Loops<'a> {
    /// Starts a thread for each loop, which sets up its engine.
    pub fn spawn<'scope>(scope: &'scope Scope<'scope, '_>, threads: Vec<IssuerThread<'a>>) -> Result<Self>
    where
        'a: 'scope,
    {
        let is_only = threads.len() == 1;
        let spawn = |(number, thread): (usize, IssuerThread<'a>)| {
            let (start, start_receiver) = channel();
            let (ready_sender, ready) = channel();
            let (result_sender, result) = channel();
            let (final_pass, final_pass_receiver) = channel();
            let end = EndChannels { result: result_sender, final_pass: final_pass_receiver };
            let name = if is_only { "issuer".to_owned() } else { format!("issuer-{number}") };
            let outcome = spawn_with_result(scope, &name, move || thread.run(&ready_sender, &start_receiver, &end))?;
            Ok(Loop { ready, start, result, final_pass, outcome })
        };
        threads.into_iter().enumerate().map(spawn).collect::<Result<_>>().map(Self)
    }

    /// Waits until all engines are set up. Returns the engine, and each warning once.
    pub fn ready(&self) -> Result<LoopReady> {
        let mut all: Option<LoopReady> = None;
        for each in &self.0 {
            let Ok(ready) = each.ready.recv() else { return Err(each.error("it was not ready")) };
            match &mut all {
                None => all = Some(ready),
                Some(all) => add_new(&mut all.warnings, ready.warnings),
            }
        }
        Ok(all.expect("there is a loop"))
    }

    /// Starts all loops. Other threads prepare and record requests.
    pub fn start(&self, clock: Monotonic) {
        for each in &self.0 {
            // Fails if the loop has ended, which shows in its result.
            let _ = each.start.send(Start::Real { clock, inline_stages: None });
        }
    }

    /// Starts the only loop, which prepares and records requests itself.
    pub fn start_inline(&self, clock: Monotonic, stages: InlineStages<'a, Monotonic>) {
        let _ = self.only().start.send(Start::Real { clock, inline_stages: Some(stages) });
    }

    /// Starts the only loop in virtual time.
    pub fn start_virtual(&self, stages: InlineStages<'a, Virtual>) {
        let _ = self.only().start.send(Start::Virtual(stages));
    }

    /// Waits until all loops have ended. Returns the sum of their results, with the first error.
    pub fn finish(&self) -> Result<LoopResult> {
        let mut all: Option<LoopResult> = None;
        for each in &self.0 {
            let Ok(result) = each.result.recv() else { return Err(each.error("it did not end")) };
            match &mut all {
                None => all = Some(result),
                Some(all) => {
                    all.counters.add(&result.counters);
                    add_new(&mut all.warnings, result.warnings);
                    if all.outcome.is_ok() {
                        all.outcome = result.outcome;
                    }
                }
            }
        }
        Ok(all.expect("there is a loop"))
    }

    /// Runs the final pass in the thread of the first loop, whose engine has all targets.
    pub fn final_pass(&self, input: FinalPassInput) -> FinalPassOutcome {
        let first = &self.0[0];
        let _ = first.final_pass.send(input);
        let done = first.outcome.recv().expect("the final pass does not panic");
        done.expect("the engine was set up").expect("a final pass was requested")
    }

    fn only(&self) -> &Loop<'a> {
        debug_assert_eq!(self.0.len(), 1, "the options are validated");
        &self.0[0]
    }
}

impl Loop<'_> {
    fn error(&self, why: &str) -> crate::Error {
        self.outcome.recv().expect("the loop does not panic").expect_err(why)
    }
}

fn add_new(warnings: &mut Vec<String>, more: Vec<String>) {
    for warning in more {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}
