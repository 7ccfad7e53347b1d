//! `--depth`. Each replay holds back what is beyond it.

use clap::{Arg, Args};
use serde::Serialize;

use super::option::{Changes, PacingOption, Rows};
use crate::depth::{Depth, DepthScope};

#[derive(Clone, Debug, Args, Serialize)]
pub struct DepthOption {
    /// Queue depth: the maximum number of requests in flight (1 to 65536), over all targets or, with each=N, for each;
    /// pushed-back requests do not count. By default more, if a program needs more
    #[arg(long, value_name = "N|each=N", default_value = "512", help_heading = "Issuing")]
    #[serde(flatten)]
    pub depth: Depth,
}

impl PacingOption for DepthOption {
    const CHANGES: Changes = Changes::Measurement;

    fn for_calls(option: Arg) -> Arg {
        option
            .help("Queue depth: the most calls that are executed at the same time, each in a thread (1 to 4096)")
            .alias("pool")
            .value_name("N")
            .default_value("64")
    }

    fn check(&self, rows: Rows, _: bool) -> Result<(), &'static str> {
        match (rows, self.depth.scope) {
            (Rows::Calls, DepthScope::Each) => {
                Err("--depth each=N is for several targets, and all calls are issued below one root: use --depth N")
            }
            _ => Ok(()),
        }
    }
}
