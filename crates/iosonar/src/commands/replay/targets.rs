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
        options.force = self.force;
        Ok(())
    }
}
