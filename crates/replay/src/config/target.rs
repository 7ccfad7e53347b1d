//! Options for the targets: which, how requests map to them, and what may be overwritten.

use clap::builder::{OsStringValueParser, TypedValueParser};
use serde::Serialize;

use crate::address::device_map::Mapping;
use crate::address::router::Rules;

/// The targets, and how requests map to them.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Target")]
pub struct TargetOptions {
    /// The block device or regular file to replay on: the replay overwrites its content
    ///
    /// SRC= maps one device of the load, by name or number (see `iosonar info`), to this target. Repeat the option for
    /// several targets; they share one clock. A target without SRC= takes all other devices; without such a target, their
    /// requests are left out and counted. Two devices of the load may share a target.
    #[arg(long = "target", short = 't', value_name = "[SRC=]DEV_OR_FILE")]
    #[arg(value_parser = OsStringValueParser::new().map(|word| Mapping::from(word.as_os_str())))]
    #[arg(required_unless_present_any = ["engine", "fake_io", "simulate", "calibrate"])]
    pub targets: Vec<Mapping>,
    /// How requests map to a target.
    #[command(flatten)]
    #[serde(flatten)]
    pub rules: Rules,
    /// Do not sample the target before the run for areas that were never written
    #[arg(long)]
    pub no_sample: bool,
    /// Overwrite a target with a file system, LVM, RAID or partitions, or a file with data
    #[arg(long)]
    pub force: bool,
}
