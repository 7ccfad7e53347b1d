//! How often the load is run, and how its times are kept.

use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use iosonar_replay::issuer::Think;
use iosonar_replay::options::Options;
use iosonar_replay::perturb::Perturb;
use iosonar_trace::Nanos;

use crate::duration;

#[derive(clap::Args)]
#[command(next_help_heading = "Ways to run")]
pub struct Modes {
    /// Replay the load again and again, until --for is over or Ctrl-C is pressed; time goes on from round to round
    #[arg(long = "loop")]
    again: bool,
    /// End the run after this time, whatever is left of the load: 90, 10m, 2h
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    run_for: Option<Duration>,
    /// Replay nothing, but measure up to how many requests in a second this machine is faithful, without any device; with
    /// --depth, --ahead, --wait and --isolate as a replay has them
    #[arg(long, conflicts_with_all = ["load", "targets", "output", "asap", "closed", "perturb"])]
    pub calibrate: bool,
    /// Run the whole replay that many times, with a numbered result each (sdb.1.replay.parquet, …): how much differs by
    /// chance
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Issue each request when an earlier one is through, as --depth programs do that wait for their answers, instead of
    /// at its time; without a value, with the load's pauses between them
    #[arg(
        long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "think",
        conflicts_with_all = ["asap", "perturb"]
    )]
    closed: Option<ClosedName>,
    /// Make issue times worse on purpose, to see how much that changes: quantize=10ms puts each request off to the next
    /// multiple of that time, delay=1ms by a random time with that mean (uniform from 0 to 2 ms)
    #[arg(long, value_name = "HOW=TIME", conflicts_with = "asap")]
    perturb: Option<Perturb>,
    /// What chance depends on, with --perturb delay and --simulate: the same seed gives the same times
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum ClosedName {
    /// Each program pauses as long as the load does between two of its requests
    Think,
    /// No pauses: always --depth requests in flight
    NoThink,
}

impl Modes {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        options.again = self.again;
        options.run_for = self.run_for.map(|time| Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)));
        options.closed = self.closed.map(|how| match how {
            ClosedName::Think => Think::AsLoad,
            ClosedName::NoThink => Think::Never,
        });
        (options.perturb, options.seed) = (self.perturb, self.seed);
        Ok(())
    }
}
