//! Where the requests go on the target, and what may be overwritten.

use anyhow::Result;
use clap::ValueEnum;
use iosonar_replay::options::Options;
use iosonar_replay::placement::Align;

#[derive(clap::Args)]
#[command(next_help_heading = "Target")]
pub struct Targets {
    /// What to do with requests that are not aligned to the target's logical blocks
    #[arg(long, value_enum, default_value_t = AlignName::Expand)]
    align: AlignName,
    /// Don't read samples of the target before the run; they find areas that were never written
    #[arg(long)]
    no_sample: bool,
    /// Overwrite a target that carries a file system, LVM, RAID or partitions
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum AlignName {
    /// Widen them to whole blocks
    Expand,
    /// Leave them out, and count them
    Reject,
}

impl Targets {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        options.align = match self.align {
            AlignName::Expand => Align::Expand,
            AlignName::Reject => Align::Reject,
        };
        options.no_sample = self.no_sample;
        options.force = self.force;
        Ok(())
    }
}
