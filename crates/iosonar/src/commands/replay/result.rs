//! What is kept of a run, and what is said about it.

use anyhow::Result;
use iosonar_replay::options::Options;

#[derive(clap::Args)]
#[command(next_help_heading = "Result")]
pub struct ResultArgs {
    /// Replace an existing result
    #[arg(long)]
    overwrite: bool,
    /// Also record what describes the replayer itself
    #[arg(long)]
    verbose: bool,
    /// Print the closing statistics as one JSON object on standard output
    #[arg(long)]
    pub json: bool,
}

impl ResultArgs {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        (options.overwrite, options.verbose) = (self.overwrite, self.verbose);
        Ok(())
    }
}
