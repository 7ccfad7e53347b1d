//! `iosonar doctor`: what this machine can do, and what to change for faithful replays.
//!
//! A check is a file; `registry.rs` lists them.

mod clock;
mod ebpf;
mod floor;
mod found;
mod governor;
mod host;
mod idle_states;
mod interrupts;
mod io_uring;
mod locked_memory;
mod neighbours;
mod output;
mod polling;
mod privileges;
mod processors;
mod quota;
mod registry;
mod schedulers;
#[cfg(test)]
mod tests;
mod trial;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use iosonar_pacing::Stop;

use self::found::{Change, Effect, Found, Trial};
use self::host::Host;
use self::output::{Advice, Examined};
use self::registry::CHECKS;
use crate::console::{answer_json, out, status};
use crate::{exit, watch};

/// Say what this machine can do, and what to change
///
/// Checks what recording and faithful replays need, measures the timer latency without I/O for a second (the floor: no
/// replay on this machine can be more precise), and lists what to change, the largest effect first, with the command to type.
/// Changes nothing, unless with --try.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar doctor
  sudo iosonar doctor --try               # which of the changes help here
  iosonar doctor --json

Exit code 0, whatever it finds.")]
pub struct Args {
    /// Make each change that can be undone, measure the floor before and after, and undo it: ten seconds each, as root
    #[arg(long = "try")]
    tries: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let stop = Arc::new(Stop::default());
        let _handler = watch::stop_on_signals(&stop, "the measurement").context("cannot handle signals")?;
        let found = examine(&Host::new(Path::new("/")));
        let changes = found.iter().flat_map(|(_, found)| &found.changes);
        let mut trials =
            Trials { begun: 0, all: changes.filter(|change| !matches!(change.trial, Trial::Not(_))).count() };
        // A stop is an error of the measurement, but not of the command.
        let outcome = floor::measure_all(None, &stop).map_err(anyhow::Error::from).and_then(|floor| {
            let advice =
                advise(&found, |change| if self.tries { trials.of(change, &stop).map(Some) } else { Ok(None) })?;
            Ok(Examined { found: &found, floor, advice })
        });
        if stop.is_requested() {
            status!("stopped; all settings are as before");
            return Ok(ExitCode::from(exit::CUT_SHORT));
        }
        let examined = outcome?;
        if self.json {
            answer_json(&examined.json())?;
        } else {
            out!("{}", examined.text());
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The progress of `--try`.
struct Trials {
    begun: usize,
    all: usize,
}

impl Trials {
    fn of(&mut self, change: &Change, stop: &Stop) -> Result<trial::Outcome> {
        if let Trial::Not(why) = change.trial {
            return Ok(trial::Outcome::NotTried(why.into()));
        }
        self.begun += 1;
        status!("trial {} of {}, for {} seconds: {}", self.begun, self.all, trial::SECONDS, change.what);
        trial::of(&change.trial, change.effect, stop)
    }
}

/// Runs all checks. Without the rights for trials, none can be tried.
fn examine(host: &Host) -> Vec<(&'static str, Found)> {
    let mut all: Vec<_> = CHECKS.iter().map(|check| (check.name, (check.run)(host))).collect();
    if let Some(why) = privileges::bar_to_trials(host) {
        let changes = all.iter_mut().flat_map(|(_, found)| &mut found.changes);
        changes
            .filter(|change| !matches!(change.trial, Trial::Not(_)))
            .for_each(|change| change.trial = Trial::Not(why));
    }
    all
}

/// What to change: first what features need, then the largest effect first, by what was measured, then by what is known of
/// such changes.
fn advise<'a>(
    found: &'a [(&'static str, Found)],
    mut tried: impl FnMut(&Change) -> Result<Option<trial::Outcome>>,
) -> Result<Vec<Advice<'a>>> {
    let mut all = Vec::new();
    for (check, found) in found {
        for change in &found.changes {
            all.push(Advice { check, change, tried: tried(change)? });
        }
    }
    all.sort_by(|one, other| {
        let is_other = |advice: &Advice<'_>| advice.change.effect != Effect::Feature;
        let saved = |advice: &Advice<'_>| advice.tried.as_ref().and_then(trial::Outcome::saved_us).unwrap_or(0.0);
        let by_effect = saved(other).total_cmp(&saved(one)).then(one.change.effect.cmp(&other.change.effect));
        is_other(one).cmp(&is_other(other)).then(by_effect)
    });
    Ok(all)
}
