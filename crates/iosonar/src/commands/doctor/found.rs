//! What a check finds, and what to change.

use std::path::PathBuf;

use iosonar_pacing::host::isolation::IsolationPart;
use serde::Serialize;

/// How a machine does in one respect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing to change.
    Good,
    /// It works; a change makes replays more faithful.
    Improvable,
    /// Something that iosonar can use does not work here.
    Missing,
    /// The machine does not tell.
    Unknown,
}

/// What a change saves, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// A feature that does not work without it: not ranked with the others.
    Feature,
    /// Delays of milliseconds.
    Milliseconds,
    /// Delays of 20 to 1000 µs.
    ManyMicroseconds,
    /// Delays of less than 20 µs.
    FewMicroseconds,
    /// Latencies of the device; delays stay.
    Latencies,
}

impl Effect {
    /// The largest delay that such a change saves, in µs, if that is known.
    pub fn largest_saving_us(self) -> Option<f64> {
        match self {
            Self::ManyMicroseconds => Some(1000.0),
            Self::FewMicroseconds => Some(20.0),
            Self::Feature | Self::Milliseconds | Self::Latencies => None,
        }
    }

    pub fn phrase(self) -> &'static str {
        match self {
            Self::Feature => "a feature",
            Self::Milliseconds => "delays of milliseconds",
            Self::ManyMicroseconds => "delays of 20 to 1000 µs",
            Self::FewMicroseconds => "delays of less than 20 µs",
            Self::Latencies => "latencies of the device",
        }
    }
}

/// How `--try` makes a change and undoes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Trial {
    /// These files get these texts; their old ones are saved on disk first.
    Settings(Vec<(PathBuf, String)>),
    /// A part of `--isolate`.
    Isolate(IsolationPart),
    /// Not tried, because …
    Not(&'static str),
}

/// A change to the machine, or to the command line.
#[derive(Clone, Debug)]
pub struct Change {
    /// The imperative.
    pub what: String,
    pub effect: Effect,
    /// What to type; none if no command does it.
    pub command: Option<String>,
    pub trial: Trial,
}

impl Change {
    pub fn new(effect: Effect, what: impl Into<String>, command: impl Into<String>, trial: Trial) -> Self {
        Self { what: what.into(), effect, command: Some(command.into()), trial }
    }

    /// A change that no command makes.
    pub fn without_command(effect: Effect, what: impl Into<String>) -> Self {
        Self { what: what.into(), effect, command: None, trial: Trial::Not("no command makes it") }
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Found {
    pub state: State,
    /// What the machine has.
    pub what: String,
    pub changes: Vec<Change>,
}

impl Found {
    pub fn good(what: impl Into<String>) -> Self {
        Self { state: State::Good, what: what.into(), changes: Vec::new() }
    }

    pub fn unknown(what: impl Into<String>) -> Self {
        Self { state: State::Unknown, what: what.into(), changes: Vec::new() }
    }

    pub fn improvable(what: impl Into<String>, change: Change) -> Self {
        Self { state: State::Improvable, what: what.into(), changes: vec![change] }
    }

    pub fn missing(what: impl Into<String>, change: Change) -> Self {
        Self { state: State::Missing, what: what.into(), changes: vec![change] }
    }
}
