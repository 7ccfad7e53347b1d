//! Options for verification.

use clap::builder::TypedValueParser;
use serde::Serialize;

use crate::verify::Verify;

/// What to verify, and with how much memory.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Verification")]
pub struct VerifyOptions {
    /// Check that reads return the data written last; each level includes those before it. Not for measurements: it costs
    /// CPU time, and paranoia doubles the I/O of writes
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub verify: Verify,
    /// Memory to track written blocks, in MiB; beyond it, only a sample of the blocks is checked
    #[arg(long, value_name = "MIB", default_value = "1024")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20).map(|mib| mib << 20))]
    pub verify_memory: u64,
}
