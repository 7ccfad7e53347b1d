//! Options for a program, which makes requests beside the load or instead of it.

use iosonar_trace::params::parse_count;
use serde::Serialize;

/// The program and its settings.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Program")]
pub struct ProgramOptions {
    /// Issue the requests of this program beside those of the load, on one clock: a ready program (`iosonar workload list`) or
    /// a TOML file. `iosonar workload run` runs a program alone
    #[arg(long, value_name = "PROGRAM")]
    pub program: Option<String>,
    /// Multiply the instances of the program's streams, and the sizes that grow with them
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = parse_count, allow_hyphen_values = true)]
    pub scale: u64,
    /// Set a parameter of the program; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub set: Vec<String>,
}

impl ProgramOptions {
    /// Parameters and their values.
    pub fn parameters(&self) -> Vec<(String, String)> {
        let split = self.set.iter().filter_map(|text| text.split_once('='));
        split.map(|(name, value)| (name.trim().to_owned(), value.to_owned())).collect()
    }
}

fn parse_setting(text: &str) -> Result<String, String> {
    match text.contains('=') {
        true => Ok(text.to_owned()),
        false => Err("expected NAME=VALUE, for example rate=500".into()),
    }
}
