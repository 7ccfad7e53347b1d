//! What happens to a request that overlaps one in flight.

use serde::Serialize;

use crate::issuer::conflicts::{Policy, Strong};

/// Which overlaps are conflicts, and what follows.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Overlaps")]
pub struct OverlapOptions {
    /// What to do with a request that overlaps one in flight
    #[arg(long, value_enum, default_value_t)]
    pub conflicts: Policy,
    /// Which overlaps conflict
    #[arg(long, value_enum, default_value_t)]
    pub strong: Strong,
}

impl OverlapOptions {
    /// Whether requests that overlap, one of which writes, may be in flight together.
    pub fn may_overlap(&self) -> bool {
        self.conflicts == Policy::Allow || self.strong == Strong::Writes
    }
}
