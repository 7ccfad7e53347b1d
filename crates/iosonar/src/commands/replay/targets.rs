//! What is replayed on, where the requests go there, and what may be overwritten.

use anyhow::Result;
use clap::ValueEnum;
use iosonar_replay::mapping::Mapping;
use iosonar_replay::options::Options;
use iosonar_replay::placement::{Align, Fit};

#[derive(clap::Args)]
#[command(next_help_heading = "Target")]
pub struct Targets {
    /// The block device or regular file to replay on; its content is overwritten
    ///
    /// With SRC= only the requests of that device of the load go there: its name or its number, as `iosonar info` lists
    /// them. Give it several times for several devices: they are replayed at once, by one clock. One without SRC= takes
    /// the devices that no other names; if there is none, these are left out, and counted. Two devices of the load may
    /// share a target.
    #[arg(long = "target", short = 't', value_name = "[SRC=]DEV_OR_FILE")]
    #[arg(required_unless_present_any = ["engine", "fake_io", "simulate", "calibrate"])]
    targets: Vec<Mapping>,
    /// What to do where the load reaches beyond its target
    #[arg(long, value_enum, default_value_t = FitName::Wrap)]
    fit: FitName,
    /// What to do with requests that are not aligned to the target's logical blocks
    #[arg(long, value_enum, default_value_t = AlignName::Expand)]
    align: AlignName,
    /// Don't read samples of the target before the run; they find areas that were never written
    #[arg(long)]
    no_sample: bool,
    /// Overwrite a target that carries a file system, LVM, RAID or partitions
    #[arg(long)]
    force: bool,
    /// Leave out everything but reads, and count it: nothing is overwritten, so the target may hold data, and be in use
    #[arg(long, conflicts_with = "force")]
    reads_only: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum FitName {
    /// Go on at the target's beginning: the sector modulo the target's size
    Wrap,
    /// Multiply all positions so that the load's device, or what the load reaches, becomes the whole target
    Scale,
    /// Leave out what does not lie on the target as a whole, and count it
    Clip,
    /// Refuse to replay such a load
    Reject,
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
        options.fit = match self.fit {
            FitName::Wrap => Fit::Wrap,
            FitName::Scale => Fit::Scale,
            FitName::Clip => Fit::Clip,
            FitName::Reject => Fit::Reject,
        };
        options.targets = self.targets;
        (options.force, options.reads_only) = (self.force, self.reads_only);
        Ok(())
    }
}
