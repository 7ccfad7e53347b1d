//! `--for`

use clap::{Arg, Args};
use iosonar_trace::Nanos;
use iosonar_trace::params::parse_positive_duration;
use serde::Serialize;

use super::option::{Changes, PacingOption};

#[derive(Clone, Debug, Args, Serialize)]
pub struct RunFor {
    /// Replay only requests scheduled within this time of the run: 90, 10m, 2h; requests due before its end are still issued.
    /// With --asap, issue nothing new after it
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive_duration, allow_hyphen_values = true)]
    #[arg(help_heading = "Run modes")]
    #[serde(rename = "for")]
    pub run_for: Option<Nanos>,
}

impl PacingOption for RunFor {
    // The numbers of rows say whether the loads differ.
    const CHANGES: Changes = Changes::Measurement;

    fn for_calls(option: Arg) -> Arg {
        let help = "Replay only calls scheduled within this time of the run: 90, 10m, 2h. With another --timing than exact, \
                    issue no more calls after this time";
        option.help(help).help_heading("Order and time")
    }

    fn until(&self) -> Option<Nanos> {
        self.run_for
    }
}
