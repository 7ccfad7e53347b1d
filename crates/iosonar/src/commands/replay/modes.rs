//! How often the load is run, and how its times are kept.

use anyhow::Result;
use clap::ValueEnum;
use iosonar_replay::config::options::Options;
use iosonar_replay::issuer::Think;
use iosonar_replay::schedule::perturb::Perturb;
use iosonar_trace::Nanos;

use crate::duration;

#[derive(clap::Args)]
#[command(next_help_heading = "Ways to run")]
pub struct Modes {
    /// Replay the load in a loop, until --for is over or Ctrl-C; time continues from iteration to iteration
    #[arg(long = "loop")]
    again: bool,
    /// Replay only requests scheduled within this time of the run: 90, 10m, 2h; requests due before its end are still issued.
    /// With --asap, issue nothing new after it
    #[arg(long = "for", value_name = "TIME", value_parser = duration::above_zero, allow_hyphen_values = true)]
    run_for: Option<Nanos>,
    /// Measure the highest rate that this machine replays faithfully, without I/O; takes --depth, --ahead, --wait and
    /// --isolate
    #[arg(long, conflicts_with_all = ["load", "targets", "output", "asap", "closed", "perturb"])]
    pub calibrate: bool,
    /// Run the replay this many times, with numbered results (sdb.1.replay.parquet, …), to see the variance between runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Closed loop: --depth clients issue a request each, wait for its completion and, unless no-think, for the think time
    /// of the load
    #[arg(
        long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "think",
        conflicts_with_all = ["asap", "perturb"]
    )]
    closed: Option<ClosedName>,
    /// Degrade the issue times on purpose, to see the effect: quantize=10ms delays each request to the next multiple of that
    /// time, delay=1ms delays it by a random time with that mean (uniform from 0 to 2 ms)
    #[arg(long, value_name = "HOW=TIME", conflicts_with = "asap")]
    perturb: Option<Perturb>,
    /// Seed of the random generator for --perturb delay and --simulate
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum ClosedName {
    /// Think time as in the load, between its requests
    Think,
    /// No think time: always --depth requests in flight
    NoThink,
}

impl Modes {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        options.again = self.again;
        options.run_for = self.run_for;
        options.closed = self.closed.map(|how| match how {
            ClosedName::Think => Think::AsLoad,
            ClosedName::NoThink => Think::Never,
        });
        (options.perturb, options.seed) = (self.perturb, self.seed);
        Ok(())
    }
}
