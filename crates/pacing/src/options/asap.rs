//! `--asap`. Each replay has its own way of issuing without times.

use clap::{Arg, Args};
use serde::Serialize;

use super::option::{Changes, PacingOption};

#[derive(Clone, Debug, Args, Serialize)]
pub struct Asap {
    /// Issue requests as fast as --depth allows, regardless of their scheduled times
    #[arg(long, help_heading = "Time")]
    pub asap: bool,
}

impl PacingOption for Asap {
    const CHANGES: Changes = Changes::Load;

    fn for_calls(option: Arg) -> Arg {
        let help = "Issue calls as soon as the order allows, regardless of their times";
        option.help(help).conflicts_with_all(["timing", "speedup"]).help_heading("Order and time")
    }
}
