//! The options that say what is written.

use anyhow::Result;
use iosonar_replay::config::options::Options;
use iosonar_replay::pipeline::payload::{Asked, Kind, Percent};

#[derive(clap::Args)]
#[command(next_help_heading = "Data")]
pub struct Data {
    /// Data of writes: random (new for each request), zero, or pattern=HEX, 1 to 512 bytes, such as pattern=deadbeef
    #[arg(long = "data", value_name = "WHAT", default_value_t = Kind::Random)]
    kind: Kind,
    /// Make this share of each 4 KiB compressible (0xdeadbeef repeated, as many storages skip zeros), the rest random
    #[arg(long, value_name = "PERCENT", conflicts_with = "fill_random")]
    compressible: Option<Percent>,
    /// Make this share of the 4 KiB blocks duplicates of blocks written earlier in this run
    #[arg(long, value_name = "PERCENT")]
    dedupe: Option<Percent>,
    /// Make this share of each 4 KiB random, the rest zeros, as blkreplay does
    #[arg(long, value_name = "PERCENT")]
    fill_random: Option<Percent>,
}

impl Data {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        let Self { kind, compressible, dedupe, fill_random } = self;
        options.data = Asked { kind, compressible, dedupe, fill_random }.spec()?;
        Ok(())
    }
}
