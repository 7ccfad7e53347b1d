//! Options of a run that other code reads from its footer. The map has every option of the replayer, under its long name with
//! `_` for `-`; a missing option, or one of another type, counts as not given.

use super::RunInfo;
use super::value::OptionValue;
use crate::model::units::Nanos;

impl RunInfo {
    /// `--asap`: without scheduled times.
    pub fn is_asap(&self) -> bool {
        self.has_flag("asap")
    }

    /// `--closed`: the kind of closed loop; `None` for an open loop.
    pub fn closed_loop(&self) -> Option<&str> {
        self.option("closed").text()
    }

    /// `--no-o-direct`: through the page cache.
    pub fn is_cached(&self) -> bool {
        self.has_flag("no_o_direct")
    }

    /// `--poll`: completions are polled for.
    pub fn is_polled(&self) -> bool {
        self.has_flag("poll")
    }

    /// `--o-sync`: writes complete when durable.
    pub fn is_synchronous(&self) -> bool {
        self.has_flag("o_sync")
    }

    /// `--verbose`: the result has the replayer's own times.
    pub fn is_verbose(&self) -> bool {
        self.has_flag("verbose")
    }

    /// `--overwrite`: the result replaces an existing one.
    pub fn overwrites(&self) -> bool {
        self.has_flag("overwrite")
    }

    /// `--output-offset`: added to all times of the result.
    pub fn output_offset(&self) -> Nanos {
        Nanos(self.option("output_offset").integer().unwrap_or(0))
    }

    /// An option by its name in the footer; null if missing.
    pub(super) fn option(&self, name: &str) -> &OptionValue {
        self.options.known().map_or(&OptionValue::Null, |options| options.get(name))
    }

    fn has_flag(&self, name: &str) -> bool {
        *self.option(name) == OptionValue::Flag(true)
    }
}
