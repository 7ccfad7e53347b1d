//! `--isolate`

use clap::{Arg, Args};
use serde::Serialize;

use super::option::{Changes, PacingOption, Rows};
use crate::host::isolation::IsolationPart;

#[derive(Clone, Debug, Args, Serialize)]
pub struct Isolate {
    /// Isolate the issuing loop from the rest of the machine in all of these ways or only in those listed, and restore
    /// the settings at the end (needs root)
    #[arg(long, value_name = "PARTS", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    #[arg(default_missing_value = "processors,workers,interrupts,priority,awake", help_heading = "Issuing")]
    pub isolate: Vec<IsolationPart>,
}

impl PacingOption for Isolate {
    const CHANGES: Changes = Changes::Measurement;

    fn for_calls(option: Arg) -> Arg {
        option
            .help(
                "Give the threads that issue calls priority over other programs and keep idle processors awake, or do only \
                 what is listed; restore the settings at the end (needs root)",
            )
            .default_missing_value("priority,awake")
    }

    fn check(&self, rows: Rows, _: bool) -> Result<(), &'static str> {
        let needs_one_thread = self.isolate.iter().any(|part| part.is_for_one_thread());
        match rows {
            Rows::Calls if needs_one_thread => {
                Err("--isolate reserves a processor for one thread, but many threads issue \
                                                    calls: use --isolate=priority,awake")
            }
            _ => Ok(()),
        }
    }
}
