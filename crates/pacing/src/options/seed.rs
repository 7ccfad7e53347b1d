//! `--seed`

use clap::{Arg, Args};
use iosonar_trace::params::whole_number;
use serde::Serialize;

use super::option::{Changes, PacingOption};

#[derive(Clone, Debug, Args, Serialize)]
pub struct Seed {
    /// Random seed of --perturb delay, of --simulate and of a program
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole_number::<u64>(0..=u64::MAX))]
    #[arg(allow_hyphen_values = true, help_heading = "Run modes")]
    pub seed: u64,
}

impl PacingOption for Seed {
    const CHANGES: Changes = Changes::Measurement;

    fn for_calls(option: Arg) -> Arg {
        option.help("Random seed of --perturb delay")
    }
}
