//! Options for verification.

use iosonar_trace::params::parse_memory;
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
    /// Memory to track written blocks; beyond it, only a sample of the blocks is checked
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_memory, allow_hyphen_values = true)]
    pub verify_memory: u64,
}
