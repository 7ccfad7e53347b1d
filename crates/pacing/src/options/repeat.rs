//! `--repeat`. The commands run the replay again.

use clap::{Arg, Args};
use iosonar_trace::params::whole_number;
use serde::Serialize;

use super::option::{Changes, PacingOption};

#[derive(Clone, Debug, Args, Serialize)]
pub struct Repeat {
    /// Run the replay this many times, with numbered results (sdb.1.replay.parquet, …), to see the variance between runs. Later
    /// runs find the target as the earlier ones left it; `iosonar campaign` recreates and fills it before each run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number::<u32>(1..=10_000))]
    #[arg(allow_hyphen_values = true, help_heading = "Run modes")]
    #[serde(skip)]
    pub repeat: u32,
}

impl PacingOption for Repeat {
    const CHANGES: Changes = Changes::Nothing;

    fn for_calls(option: Arg) -> Arg {
        option.help(
            "Run the replay this many times, with numbered results (tar.1.calls-run.parquet, …), to see the variance between \
             runs. Later runs find the files as the earlier ones left them; `iosonar files prepare --reset` restores them",
        )
    }
}
