//! `--start-file`

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::option::{Changes, PacingOption};

#[derive(Clone, Debug, Args, Serialize)]
pub struct StartFile {
    /// When all is prepared, wait until this file exists and has a line with the start time, as for --start-at
    #[arg(long, value_name = "FILE", conflicts_with_all = ["start_at", "repeat"], help_heading = "Issuing")]
    pub start_file: Option<PathBuf>,
}

impl PacingOption for StartFile {
    const CHANGES: Changes = Changes::Nothing;
}
