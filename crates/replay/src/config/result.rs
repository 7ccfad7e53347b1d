//! What is kept of a run.

use iosonar_trace::Nanos;
use iosonar_trace::params::parse_duration;
use serde::Serialize;

/// What the result holds.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Result")]
pub struct ResultOptions {
    /// Replace an existing result
    #[arg(long)]
    pub overwrite: bool,
    /// Also record the replayer's own times
    #[arg(long)]
    pub verbose: bool,
    /// Add this to all times of the result, at most 36500d: 600, 10m
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = offset, allow_hyphen_values = true)]
    pub output_offset: Nanos,
}

/// Times in a result are below 2^62 ns, which is 146 years.
const MOST_OFFSET: Nanos = Nanos(36_500 * 86_400 * 1_000_000_000);

fn offset(text: &str) -> Result<Nanos, String> {
    let offset = parse_duration(text)?;
    if offset > MOST_OFFSET {
        return Err(format!("`{text}` is too long: the times of a result would not fit; give at most 36500d"));
    }
    Ok(offset)
}
