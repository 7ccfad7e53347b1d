//! `--speedup`

use clap::{Arg, Args};
use iosonar_trace::Nanos;
use iosonar_trace::params::parse_positive;
use serde::Serialize;

use super::option::{Changes, PacingOption};

#[derive(Clone, Debug, Args, Serialize)]
pub struct Speedup {
    /// Divide all times of the load by this: 10, 0.5
    #[arg(long, value_name = "F", default_value = "1", value_parser = parse_positive, allow_hyphen_values = true)]
    #[arg(conflicts_with = "asap", help_heading = "Time")]
    pub speedup: f64,
}

impl PacingOption for Speedup {
    const CHANGES: Changes = Changes::Load;

    fn for_calls(option: Arg) -> Arg {
        option.help("Divide all times and gaps of the trace by this: 10, 0.5").help_heading("Order and time")
    }

    #[inline]
    fn scheduled(&self, at: Nanos) -> Nanos {
        if self.speedup == 1.0 { at } else { Nanos((at.0 as f64 / self.speedup).round() as i64) }
    }

    fn distortion(&self) -> Option<String> {
        (self.speedup != 1.0).then(|| format!("a speed-up of {}", self.speedup))
    }
}
