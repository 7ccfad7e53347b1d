//! What an option of both replays is: its definition for clap, its keys in the footer, and what it does.

use std::any::TypeId;

use clap::{Arg, Command};
use iosonar_trace::Nanos;
use serde::Serialize;

/// What the option changes in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Changes {
    /// Other scheduled times: runs with other values have not replayed the same load.
    Load,
    /// The scheduled times, but it issues later on purpose: the result is fake.
    IssueTimes,
    /// The same load, measured in other circumstances.
    Measurement,
    /// Nothing: it decides when and how often the replay starts.
    Nothing,
}

/// What is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Requests, on devices.
    Requests,
    /// Calls, below a root.
    Calls,
}

/// An option of both replays. What it does by default changes nothing.
pub trait PacingOption: clap::Args {
    /// What a replay with it has otherwise.
    const CHANGES: Changes;

    /// Its definition in the words of calls. Other words than those of requests: help, default, conflicts.
    fn for_calls(option: Arg) -> Arg {
        option
    }

    /// Why a replay of these rows cannot have it, with what to do instead. Without times to keep, rows are issued as fast as
    /// possible.
    fn check(&self, _: Rows, _has_times: bool) -> Result<(), &'static str> {
        Ok(())
    }

    /// The scheduled time of a row at this time of the load, both since the first row. Must never decrease.
    #[inline]
    fn scheduled(&self, at: Nanos) -> Nanos {
        at
    }

    /// How much later than scheduled a row is issued on purpose. `random` returns random numbers.
    #[inline]
    fn delay(&self, _scheduled: Nanos, _random: &mut impl FnMut() -> u64) -> Nanos {
        Nanos::ZERO
    }

    /// From this time of the run on, nothing new is issued.
    fn until(&self) -> Option<Nanos> {
        None
    }

    /// How it distorts the load, as the subject of a sentence: a speed-up of 2.
    fn distortion(&self) -> Option<String> {
        None
    }

    /// How it perturbs the issue times, as on the command line; `None` if it does not.
    fn perturbation(&self) -> Option<String> {
        None
    }
}

/// What is known of an option by its definition.
#[derive(Clone, Debug)]
pub struct OptionInfo {
    /// Its name in clap.
    pub id: String,
    /// Its name on the command line.
    pub name: String,
    /// Its key in the footer.
    pub key: String,
    /// What a replay with it has otherwise.
    pub changes: Changes,
    /// Whether its value is a time, in ns in the footer.
    pub is_time: bool,
}

impl OptionInfo {
    /// What is known of this option.
    pub(super) fn of<T: PacingOption>() -> Self {
        let command = T::augment_args(Command::new("option"));
        let option = command.get_arguments().next().expect("the derived definition");
        let name = option.get_long().expect("an option, no argument").to_owned();
        let is_time = option.get_value_parser().type_id() == TypeId::of::<Nanos>();
        Self { id: option.get_id().to_string(), key: name.replace('-', "_"), name, changes: T::CHANGES, is_time }
    }
}
