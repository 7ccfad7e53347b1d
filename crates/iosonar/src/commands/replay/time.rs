//! Which part of the load is replayed, and how fast.

use anyhow::{Result, bail};
use iosonar_replay::options::{Options, Window};
use iosonar_trace::Nanos;

#[derive(clap::Args)]
#[command(next_help_heading = "Time")]
pub struct Time {
    /// Leave out what lies before this time of the load, in seconds; 0 is its beginning
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    start: f64,
    /// Leave out what lies at or after this time of the load, in seconds; 0 is its end
    #[arg(long, value_name = "S", default_value_t = 0.0, conflicts_with = "duration")]
    end: f64,
    /// Replay that many seconds of the load, from --start on; 0 is all
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    duration: f64,
    /// Divide all times of the load by this
    #[arg(long, value_name = "F", default_value_t = 1.0, conflicts_with = "asap")]
    speedup: f64,
    /// Issue each request as soon as there is room, whatever its time
    #[arg(long)]
    asap: bool,
}

impl Time {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        options.window = self.window()?;
        (options.speedup, options.asap) = (self.speedup, self.asap);
        Ok(())
    }

    fn window(&self) -> Result<Window> {
        let start = seconds("start", self.start)?;
        let end = match (seconds("end", self.end)?, seconds("duration", self.duration)?) {
            (end, _) if end > Nanos::ZERO => end,
            (_, duration) if duration > Nanos::ZERO => start + duration,
            _ => Nanos::MAX,
        };
        Ok(Window { start, end })
    }
}

/// What an option of that name means that is given in seconds.
pub fn seconds(name: &str, value: f64) -> Result<Nanos> {
    if !(value.is_finite() && value >= 0.0) {
        bail!("--{name} must be a number of seconds, 0 or more");
    }
    Ok(Nanos::from_secs(value))
}
