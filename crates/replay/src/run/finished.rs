//! A run that has ended.

use std::path::PathBuf;

use iosonar_trace::run_info::{Finding, Statistics};

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Where the result is.
    pub output: PathBuf,
    /// What happened.
    pub statistics: Statistics,
    /// What verification found: the first ones.
    pub findings: Vec<Finding>,
    /// The targets that these are about.
    pub targets: Vec<PathBuf>,
    /// What the user should know.
    pub warnings: Vec<String>,
}
