//! How files are read whose content does not tell it.

use anyhow::Result;
use iosonar_trace::Nanos;
use iosonar_trace::params::format_time;

use super::calls::reading::StraceReading;
use super::requests::formats::FormatReading;
use super::window::Window;
use crate::usage::misuse;

/// How to read a file whose content does not tell it: the options of each family.
#[derive(clap::Args, Default)]
pub struct Reading {
    #[command(flatten)]
    pub(super) requests: FormatReading,

    #[command(flatten)]
    pub(super) calls: StraceReading,
}

impl Reading {
    /// The window of time from that of `--from`; `None` if it is all.
    pub fn window(&self, to: Option<Nanos>) -> Result<Option<Window>> {
        let from = self.requests.window_start();
        if let (Some(from), Some(to)) = (from, to)
            && from >= to
        {
            misuse!("--from {} is not before --to {}", format_time(from), format_time(to));
        }
        Ok((from.is_some() || to.is_some()).then_some(Window { from, to }))
    }

    /// Refuses a time where only a format is asked for.
    pub fn refuse_window(&self) -> Result<()> {
        match self.requests.window_start() {
            Some(at) => misuse!("--from {}: not a format; see `iosonar formats`", format_time(at)),
            None => Ok(()),
        }
    }
}
