//! Which part of the load is replayed, and how fast.

use anyhow::Result;
use iosonar_replay::config::options::Options;
use iosonar_replay::schedule::Window;
use iosonar_trace::Nanos;
use iosonar_trace::params::parse_positive;

use crate::duration::nanos;

#[derive(clap::Args)]
#[command(next_help_heading = "Time")]
pub struct Time {
    /// Leave out requests before this time of the load: 600, 10m; 0 is its start
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = nanos, allow_hyphen_values = true)]
    start: Nanos,
    /// Leave out requests at or after this time of the load; 0 is its end
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = nanos, allow_hyphen_values = true, conflicts_with = "duration")]
    end: Nanos,
    /// Replay this much of the load, from --start on: 90, 5m; 0 is all
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = nanos, allow_hyphen_values = true)]
    duration: Nanos,
    /// Divide all times of the load by this: 10, 0.5
    #[arg(long, value_name = "F", default_value = "1", value_parser = parse_positive, allow_hyphen_values = true, conflicts_with = "asap")]
    speedup: f64,
    /// Issue requests as fast as --depth allows, regardless of their scheduled times
    #[arg(long)]
    asap: bool,
}

impl Time {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        options.window = self.window();
        (options.speedup, options.asap) = (self.speedup, self.asap);
        Ok(())
    }

    fn window(&self) -> Window {
        let end = match (self.end, self.duration) {
            (end, _) if end > Nanos::ZERO => end,
            (_, duration) if duration > Nanos::ZERO => self.start + duration,
            _ => Nanos::MAX,
        };
        Window { start: self.start, end }
    }
}
