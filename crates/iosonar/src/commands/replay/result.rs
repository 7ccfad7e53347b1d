//! What is kept of a run, and what is said about it.

use iosonar_replay::config::options::Options;
use iosonar_trace::Nanos;

use crate::duration::nanos;

#[derive(clap::Args)]
#[command(next_help_heading = "Result")]
pub struct ResultArgs {
    /// Replace an existing result
    #[arg(long)]
    overwrite: bool,
    /// Also record the replayer's own times
    #[arg(long)]
    verbose: bool,
    /// Add this to all times of the result, at most 36500d: 600, 10m
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = offset, allow_hyphen_values = true)]
    output_offset: Nanos,
    /// Print the closing statistics as a JSON object
    #[arg(long)]
    pub json: bool,
}

/// Later times would not fit into a result: they are below 2^62 ns, which is 146 years.
const MOST_OFFSET: Nanos = Nanos(36_500 * 86_400 * 1_000_000_000);

fn offset(text: &str) -> Result<Nanos, String> {
    let offset = nanos(text)?;
    if offset > MOST_OFFSET {
        return Err(format!("`{text}` is too long: the times of a result would not fit; give at most 36500d"));
    }
    Ok(offset)
}

impl ResultArgs {
    pub fn apply(self, options: &mut Options) -> anyhow::Result<()> {
        options.output_offset = self.output_offset;
        (options.overwrite, options.verbose) = (self.overwrite, self.verbose);
        Ok(())
    }
}
