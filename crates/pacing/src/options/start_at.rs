//! `--start-at`

use clap::Args;
use serde::Serialize;

use super::option::{Changes, PacingOption};
use crate::start::UnixTime;

#[derive(Clone, Debug, Args, Serialize)]
pub struct StartAt {
    /// Start the run at this time of the system clock, in seconds since 1970 UTC: 1767225600, 1767225600.25. Everything is
    /// prepared first; fails if that takes longer, or if the time is more than a day ahead
    #[arg(long, value_name = "TIME", conflicts_with = "repeat", allow_hyphen_values = true, help_heading = "Issuing")]
    pub start_at: Option<UnixTime>,
}

impl PacingOption for StartAt {
    const CHANGES: Changes = Changes::Nothing;
}
