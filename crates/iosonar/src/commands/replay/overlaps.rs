//! What happens to a request that overlaps one in flight.

use anyhow::Result;
use clap::ValueEnum;
use iosonar_replay::config::options::Options;
use iosonar_replay::issuer::conflicts::{Policy, Strong};

#[derive(clap::Args)]
#[command(next_help_heading = "Overlaps")]
pub struct Overlaps {
    /// What to do with a request that overlaps one in flight
    #[arg(long, value_enum, default_value_t = PolicyName::Partial)]
    conflicts: PolicyName,
    /// Which overlaps conflict: 0 write/write, 1 all but read/read, 2 all
    #[arg(long, value_name = "0|1|2", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    strong: u8,
}

#[derive(Clone, Copy, ValueEnum)]
enum PolicyName {
    /// Issue it anyway
    Allow,
    /// Leave it out, and count it
    Drop,
    /// Push it back until the overlap is gone; issue others meanwhile
    Partial,
    /// Hold it and all requests behind it until the overlap is gone
    Ordering,
}

impl Overlaps {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        options.conflicts = match self.conflicts {
            PolicyName::Allow => Policy::Allow,
            PolicyName::Drop => Policy::Drop,
            PolicyName::Partial => Policy::Partial,
            PolicyName::Ordering => Policy::Ordering,
        };
        options.strong = [Strong::Writes, Strong::AnyWrite, Strong::Everything][usize::from(self.strong)];
        Ok(())
    }
}
