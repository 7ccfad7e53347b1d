//! `--perturb`

use clap::{Arg, Args};
use iosonar_trace::Nanos;
use serde::Serialize;

use super::option::{Changes, PacingOption, Rows};
use crate::perturb::Perturb;

#[derive(Clone, Debug, Args, Serialize)]
pub struct PerturbOption {
    /// Degrade the issue times on purpose, to see the effect: quantize=10ms delays each request to the next multiple of
    /// 10 ms, delay=1ms delays it by a random time with a mean of 1 ms (uniform from 0 to 2 ms)
    #[arg(long, value_name = "HOW=TIME", conflicts_with = "asap", help_heading = "Run modes")]
    pub perturb: Option<Perturb>,
}

impl PacingOption for PerturbOption {
    const CHANGES: Changes = Changes::IssueTimes;

    fn for_calls(option: Arg) -> Arg {
        option.help(
            "Degrade the issue times on purpose, to see the effect: quantize=10ms delays each call to the next multiple of \
             10 ms, delay=1ms delays it by a random time with a mean of 1 ms (uniform from 0 to 2 ms)",
        )
    }

    fn check(&self, _: Rows, has_times: bool) -> Result<(), &'static str> {
        match self.perturb {
            Some(_) if !has_times => Err("--perturb changes issue times; a replay as fast as possible has none to \
                                          change: omit one of them"),
            _ => Ok(()),
        }
    }

    #[inline]
    fn delay(&self, scheduled: Nanos, random: &mut impl FnMut() -> u64) -> Nanos {
        self.perturb.map_or(Nanos::ZERO, |how| how.delay(scheduled, random))
    }

    fn perturbation(&self) -> Option<String> {
        self.perturb.map(|how| format!("--perturb {how}"))
    }
}
