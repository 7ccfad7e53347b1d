//! What is replayed on, where the requests go there, and what may be overwritten.

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::{OsStringValueParser, TypedValueParser};
use iosonar_replay::address::device_map::Mapping;
use iosonar_replay::address::placement::{Align, Fit};
use iosonar_replay::config::options::Options;

#[derive(clap::Args)]
#[command(next_help_heading = "Target")]
pub struct Targets {
    /// The block device or regular file to replay on; the replay overwrites its content
    ///
    /// SRC= maps one device of the load, by name or number (see `iosonar info`), to this target. Repeat the option for
    /// several targets; they share one clock. A target without SRC= takes all other devices; without such a target, their
    /// requests are left out and counted. Two devices of the load may share a target.
    #[arg(long = "target", short = 't', value_name = "[SRC=]DEV_OR_FILE")]
    #[arg(value_parser = OsStringValueParser::new().map(|word| Mapping::from(word.as_os_str())))]
    #[arg(required_unless_present_any = ["engine", "fake_io", "simulate", "calibrate"])]
    targets: Vec<Mapping>,
    /// What to do with requests beyond the end of the target
    #[arg(long, value_enum, default_value_t = FitName::Wrap)]
    fit: FitName,
    /// What to do with requests not aligned to the target's logical blocks
    #[arg(long, value_enum, default_value_t = AlignName::Expand)]
    align: AlignName,
    /// Do not sample the target before the run for areas that were never written
    #[arg(long)]
    no_sample: bool,
    /// Overwrite a target with a file system, LVM, RAID or partitions, or a file with data
    #[arg(long)]
    force: bool,
    /// Replay only the reads, and count the rest: writes nothing, so the target may hold data and be in use
    #[arg(long, conflicts_with = "force")]
    reads_only: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum FitName {
    /// Wrap around to the start: the sector modulo the target's size
    Wrap,
    /// Scale all positions from the size of the load's device, or its highest sector, to the size of the target
    Scale,
    /// Leave out requests that do not fit on the target, and count them
    Clip,
    /// Refuse the load
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
