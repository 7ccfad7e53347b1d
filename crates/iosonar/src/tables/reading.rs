//! How files are read whose content does not tell it.

use super::calls::reading::StraceReading;
use super::requests::formats::FormatReading;

/// How to read a file whose content does not tell it: the options of each family.
#[derive(clap::Args, Default)]
pub struct Reading {
    #[command(flatten)]
    pub(super) requests: FormatReading,

    #[command(flatten)]
    pub(super) calls: StraceReading,
}
