//! How often the load is run, and how its times are kept.

use std::time::Duration;

use anyhow::Result;
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
    /// Make issue times worse on purpose, to see how much that changes: quantize=10ms puts each request off to the next
    /// multiple of that time, delay=1ms by a random time with that mean (uniform from 0 to 2 ms)
    #[arg(long, value_name = "HOW=TIME", conflicts_with = "asap")]
    perturb: Option<Perturb>,
    /// What chance depends on, with --perturb delay: the same seed gives the same delays
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

impl Modes {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        options.again = self.again;
        options.run_for = self.run_for.map(|time| Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)));
        (options.perturb, options.seed) = (self.perturb, self.seed);
        Ok(())
    }
}
