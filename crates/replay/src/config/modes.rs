//! Options for repeating a load, for closed loops, and for perturbing issue times.

use iosonar_trace::Nanos;
use iosonar_trace::params::{parse_positive_duration, whole_number};
use serde::Serialize;

use crate::issuer::closed::Think;
use crate::schedule::perturb::Perturb;
use crate::schedule::time_map::Schedule;

/// The ways to run.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Run modes")]
pub struct ModeOptions {
    /// Replay the load in a loop until the end of --for or Ctrl-C; time continues from iteration to iteration
    #[arg(long = "loop")]
    #[serde(rename = "loop")]
    pub loops: bool,
    /// Replay only requests scheduled within this time of the run: 90, 10m, 2h; requests due before its end are still issued.
    /// With --asap, issue nothing new after it
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive_duration, allow_hyphen_values = true)]
    #[serde(rename = "for")]
    pub run_for: Option<Nanos>,
    /// Measure the highest rate that this machine replays faithfully, without I/O; uses --depth, --ahead, --wait and
    /// --isolate
    #[arg(long, conflicts_with_all = ["load", "targets", "output", "asap", "closed", "perturb"])]
    #[serde(skip)]
    pub calibrate: bool,
    /// Run the replay this many times, with numbered results (sdb.1.replay.parquet, …), to see the variance between runs. Later
    /// runs find the target as the earlier ones left it; `iosonar campaign` recreates and fills it before each run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number::<u32>(1..=10_000))]
    #[arg(allow_hyphen_values = true)]
    #[serde(skip)]
    pub repeat: u32,
    /// Closed loop: each of --depth clients issues a request, waits for its completion and, unless no-think, for the think
    /// time of the load
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "think", conflicts_with_all = ["asap", "perturb"])]
    pub closed: Option<Think>,
    /// Degrade the issue times on purpose, to see the effect: quantize=10ms delays each request to the next multiple of
    /// 10 ms, delay=1ms delays it by a random time with a mean of 1 ms (uniform from 0 to 2 ms)
    #[arg(long, value_name = "HOW=TIME", conflicts_with = "asap")]
    pub perturb: Option<Perturb>,
    /// Random seed of --perturb delay, of --simulate and of a program
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole_number::<u64>(0..=u64::MAX))]
    #[arg(allow_hyphen_values = true)]
    pub seed: u64,
}

impl ModeOptions {
    /// Applies `--for` and `--perturb` to a schedule.
    pub fn applied_to<'a>(&self, schedule: Schedule<'a>) -> Schedule<'a> {
        let schedule = schedule.until(self.run_for.unwrap_or(Nanos::MAX));
        match self.perturb {
            Some(how) => schedule.perturbed(how, self.seed),
            None => schedule,
        }
    }

    /// Why the issue times are not faithful, if they are perturbed on purpose.
    pub fn fake(&self) -> Option<String> {
        let how = self.perturb?;
        Some(format!("issue times were perturbed on purpose (--perturb {how}, --seed {})", self.seed))
    }
}
