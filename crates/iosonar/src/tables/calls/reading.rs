//! How text of strace is read.

use std::path::PathBuf;

use iosonar_files::OpenOptions;

/// How text of strace is read.
#[derive(clap::Args, Clone, Default)]
pub struct StraceReading {
    /// For text of strace: the working directory in which the command was started [default: the paths stay relative]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

impl StraceReading {
    pub(super) fn options(&self) -> OpenOptions {
        OpenOptions { cwd: self.cwd.clone() }
    }
}
