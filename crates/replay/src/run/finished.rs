//! What a run returns to its caller.

use std::path::PathBuf;

use iosonar_trace::run_info::{Finding, Statistics};

/// A finished run.
#[derive(Debug)]
pub struct Finished {
    /// Path of the result.
    pub output: PathBuf,
    /// The statistics as the footer has them.
    pub statistics: Statistics,
    /// The first findings of verification.
    pub findings: Vec<Finding>,
    /// The targets, which findings refer to by index.
    pub targets: Vec<PathBuf>,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
}
