//! Whether the target keeps what it is given.

use anyhow::Result;
use clap::ValueEnum;
use iosonar_replay::config::options::Options;
use iosonar_replay::verify::Verify;

#[derive(clap::Args)]
#[command(next_help_heading = "Verification")]
pub struct VerifyArgs {
    /// Check that reads return the data written last; each level includes those before it. Not for measurements: it costs
    /// CPU time, and paranoia doubles the I/O of writes
    #[arg(long, value_enum, value_name = "HOW", default_value_t = VerifyName::Off)]
    verify: VerifyName,
    /// Memory to track written blocks, in MiB; beyond it, only a sample of the blocks is checked
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    verify_memory: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum VerifyName {
    /// No checks
    Off,
    /// Check each read of sectors written in this run
    Reads,
    /// Also read back all written sectors at the end
    Final,
    /// Also read back each write at once
    Paranoia,
}

impl VerifyArgs {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        options.verify = match self.verify {
            VerifyName::Off => Verify::Off,
            VerifyName::Reads => Verify::Reads,
            VerifyName::Final => Verify::Final,
            VerifyName::Paranoia => Verify::Paranoia,
        };
        options.verify_memory = self.verify_memory << 20;
        Ok(())
    }
}
