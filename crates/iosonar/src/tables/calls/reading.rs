//! How strace text is read.

use std::path::PathBuf;

use iosonar_files::OpenOptions;

/// How strace text is read.
#[derive(clap::Args, Clone, Default)]
pub struct StraceReading {
    /// For strace text: the working directory in which the command was started [default: the paths stay relative]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

impl StraceReading {
    pub(super) fn options(&self) -> OpenOptions {
        OpenOptions { cwd: self.cwd.clone() }
    }
}
