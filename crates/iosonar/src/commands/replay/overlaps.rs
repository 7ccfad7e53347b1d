//! What happens to a request that overlaps one in flight.

use anyhow::Result;
use clap::ValueEnum;
use iosonar_replay::conflicts::{Policy, Strong};
use iosonar_replay::options::Options;

#[derive(clap::Args)]
#[command(next_help_heading = "Overlaps")]
pub struct Overlaps {
    /// What to do with a request that overlaps one in flight
    #[arg(long, value_enum, default_value_t = PolicyName::Partial)]
    conflicts: PolicyName,
    /// Which overlaps count: 0 two writes, 1 all but two reads, 2 any
    #[arg(long, value_name = "0|1|2", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    strong: u8,
}

#[derive(Clone, Copy, ValueEnum)]
enum PolicyName {
    /// Issue it all the same
    Allow,
    /// Leave it out, and count it
    Drop,
    /// Push it back until the overlap has gone; others go on
    Partial,
    /// Wait until the overlap has gone; so does everything behind it
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
