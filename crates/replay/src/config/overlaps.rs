//! Options for requests that overlap one in flight.

use serde::Serialize;

use crate::issuer::conflicts::{Policy, Strong};

/// Which overlaps are conflicts, and what to do about them.
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
    /// Whether a write may be in flight together with a request that it overlaps.
    pub fn may_overlap(&self) -> bool {
        self.conflicts == Policy::Allow || self.strong == Strong::Writes
    }
}
