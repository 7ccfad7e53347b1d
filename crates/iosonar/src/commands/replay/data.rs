//! The options that say what is written.

use anyhow::Result;
use iosonar_replay::data::{Asked, Kind, Percent};
use iosonar_replay::options::Options;

#[derive(clap::Args)]
#[command(next_help_heading = "Data")]
pub struct Data {
    /// What writes write: random is new for each request, zero and pattern=HEX always the same. HEX is 1 to 512 bytes, for
    /// example deadbeef
    #[arg(long = "data", value_name = "WHAT", default_value_t = Kind::Random)]
    kind: Kind,
    /// So much of each 4 KiB can be saved by compressing; the rest is random. Not zeros, which storages leave out anyway,
    /// but 0xdeadbeef
    #[arg(long, value_name = "PERCENT", conflicts_with = "fill_random")]
    compressible: Option<Percent>,
    /// So many of all 4 KiB blocks repeat one that was written before in this run
    #[arg(long, value_name = "PERCENT")]
    dedupe: Option<Percent>,
    /// So much of each 4 KiB is random, the rest is zeros; as with blkreplay
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
