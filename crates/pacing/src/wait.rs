//! How a replay waits for the next scheduled time.

use clap::ValueEnum;
use serde::Serialize;

/// How the loop waits for a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Busy-wait: precise, occupies a processor
    Spin,
    /// Sleep until shortly before the scheduled time, then spin
    Hybrid,
    /// Sleep until the scheduled time: late by the wake-up latency
    Sleep,
    /// Meanwhile, prepare requests and record results in the same thread
    // Called `work` up to version 0.1.
    #[value(alias = "work")]
    Inline,
}

impl Wait {
    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
