//! Options for the window of the load and its speed.

use iosonar_pacing::args_as;
use iosonar_trace::Nanos;
use iosonar_trace::params::parse_duration;
use serde::Serialize;

use crate::schedule::Window;

/// Window and speed-up.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Time")]
pub struct TimeOptions {
    /// The window.
    #[command(flatten)]
    #[serde(flatten)]
    pub window: Window,
}

#[derive(clap::Args)]
struct WindowArgs {
    /// Leave out requests before this time of the load: 600, 10m; 0 is its start
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_duration, allow_hyphen_values = true)]
    start: Nanos,
    /// Leave out requests at or after this time of the load; 0 is its end [default: its end]
    #[arg(long, value_name = "TIME", default_value = "0", hide_default_value = true, value_parser = parse_duration, allow_hyphen_values = true)]
    #[arg(conflicts_with = "duration")]
    end: Nanos,
    /// Replay this much of the load, beginning at --start: 90, 5m; 0 is all [default: all]
    #[arg(long, value_name = "TIME", default_value = "0", hide_default_value = true, value_parser = parse_duration, allow_hyphen_values = true)]
    duration: Nanos,
}

args_as!(WindowArgs => Window);

impl From<WindowArgs> for Window {
    fn from(WindowArgs { start, end, duration }: WindowArgs) -> Self {
        let end = match (end, duration) {
            (end, _) if end > Nanos::ZERO => end,
            (_, duration) if duration > Nanos::ZERO => start + duration,
            _ => Nanos::MAX,
        };
        Self { start, end }
    }
}
