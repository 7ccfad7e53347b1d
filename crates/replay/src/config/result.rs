//! Options for the result.

use iosonar_trace::Nanos;
use iosonar_trace::params::parse_duration;
use serde::Serialize;

/// What the result contains.
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

/// 100 years. Times in a result must be below 2^62 ns, which is 146 years.
const MAX_OFFSET: Nanos = Nanos(36_500 * 86_400 * 1_000_000_000);

fn offset(text: &str) -> Result<Nanos, String> {
    let offset = parse_duration(text)?;
    if offset > MAX_OFFSET {
        return Err(format!("`{text}` is too long: expected at most 36500d"));
    }
    Ok(offset)
}
