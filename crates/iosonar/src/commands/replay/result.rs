//! What is kept of a run, and what is said about it.

use anyhow::Result;
use iosonar_replay::options::Options;

use super::time::seconds;

#[derive(clap::Args)]
#[command(next_help_heading = "Result")]
pub struct ResultArgs {
    /// Replace an existing result
    #[arg(long)]
    overwrite: bool,
    /// Also record what describes the replayer itself
    #[arg(long)]
    verbose: bool,
    /// Add that many seconds to all times of the result
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    output_offset: f64,
    /// Print the closing statistics as one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

impl ResultArgs {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        options.output_offset = seconds("output-offset", self.output_offset)?;
        (options.overwrite, options.verbose) = (self.overwrite, self.verbose);
        Ok(())
    }
}
