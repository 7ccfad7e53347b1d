//! Programs: whole workloads as text, in TOML.
//!
//! A [`Program`] has streams. Each stream is *open*: its requests come at times that do not depend on the device; or *closed*:
//! each instance of it asks for the next request when the last one has completed. [`Program::runtime`] makes a filament of
//! each instance. `docs/workloads.md` describes the text; [`PROGRAM`], [`DEVICE`], [`STREAM`] and [`STEP`] list its keys.

mod build;
mod devices;
mod instance;
mod keys;
mod memory;
mod model;
mod parts;
mod plan;
mod recorded;
mod region;
mod scripted;
mod step;
mod stream;

pub use keys::{DEVICE, PROGRAM, STEP, STREAM};
pub use model::{Demand, Layout, Program, Settings, StreamInfo};

use std::path::PathBuf;

use iosonar_trace::{Device, Nanos, Sectors};

use crate::filament::Runtime;

impl Program {
    /// Parses a program. `file` names it in errors.
    ///
    /// # Errors
    /// If the text is not a program, with the line and the key.
    pub fn parse(file: &str, source: &str) -> Result<Self, String> {
        build::described(file, source)
    }

    /// The name that its text gives it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One sentence about it.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The text that it was parsed from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its text, with those of its scripts' files as comments.
    pub fn text(&self) -> String {
        let mut text = self.source.clone();
        for (name, script) in &self.scripts {
            let lines = script.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n");
            text += &format!("\n# The script {name}:\n{}", lines.collect::<String>());
        }
        text
    }

    /// What a conversion to this program left out, a line each.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The same with these lines.
    #[must_use]
    pub fn with_left_out(self, left_out: Vec<String>) -> Self {
        Self { left_out, ..self }
    }

    /// The same, whose errors name the lines of the job file that it was converted from.
    #[must_use]
    pub(crate) fn with_origins(self, origins: crate::origin::Origins) -> Self {
        Self { origins, ..self }
    }

    /// What makes its requests differ from what a reader of its text expects, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let sentence = |path: PathBuf| {
            format!("the load {} is incomplete: its recording or conversion was cut short", path.display())
        };
        self.loads.incomplete().into_iter().map(sentence).collect()
    }

    /// Its parameters with their defaults.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }

    /// Its streams, in the order of their numbers in a run.
    pub fn streams(&self) -> &[StreamInfo] {
        &self.streams
    }

    /// Whether some of its streams ask for requests at times, not only when others have completed.
    pub fn has_timers(&self) -> bool {
        self.streams.iter().any(|stream| stream.has_timers)
    }

    /// Its devices with their sizes. With [`Layout::Together`] it is one device.
    ///
    /// # Errors
    /// If the devices do not fit.
    pub fn devices(&self, settings: &Settings) -> Result<Vec<Device>, String> {
        build::devices(self, settings)
    }

    /// The sizes of its devices on a target of this size, for [`Layout::Separate`].
    ///
    /// # Errors
    /// If the devices do not fit.
    pub fn sizes_on(&self, target: Sectors, settings: &Settings) -> Result<Vec<Sectors>, String> {
        build::sizes_on(self, &Settings { layout: Layout::Together(target), ..settings.clone() })
    }

    /// The names of its devices.
    pub fn device_names(&self) -> Vec<String> {
        build::device_names(self)
    }

    /// What its requests need.
    ///
    /// # Errors
    /// Like [`Self::runtime`].
    pub fn demand(&self, settings: &Settings) -> Result<Demand, String> {
        build::demand(self, settings)
    }

    /// Refuses a run whose open streams would ask for far more requests than anybody waits for.
    ///
    /// # Errors
    /// Like [`Self::runtime`], and if there are too many.
    pub fn check_length(&self, settings: &Settings, until: Nanos) -> Result<(), String> {
        build::check_length(self, settings, until)
    }

    /// A filament of each instance of each stream.
    ///
    /// # Errors
    /// If a parameter is unknown, or the text is not valid with these settings.
    pub fn runtime(&self, settings: &Settings) -> Result<Runtime, String> {
        build::runtime(self, settings, |_| true)
    }

    /// The same in two parts: what has to run beside the device, and what can run ahead of it.
    ///
    /// # Errors
    /// Like [`Self::runtime`].
    pub fn runtimes(&self, settings: &Settings) -> Result<(Runtime, Option<Runtime>), String> {
        let beside = build::runtime(self, settings, |stream| !stream.runs_ahead)?;
        let runs_ahead = self.streams.iter().any(|stream| stream.runs_ahead);
        let ahead = runs_ahead.then(|| build::runtime(self, settings, |stream| stream.runs_ahead));
        Ok((beside, ahead.transpose()?))
    }

    /// The streams whose requests do not wait for completions, and the names of the others.
    ///
    /// # Errors
    /// Like [`Self::runtime`].
    pub fn open_part(&self, settings: &Settings) -> Result<(Runtime, Vec<String>), String> {
        let left_out = self.streams.iter().filter(|stream| !stream.is_open).map(|stream| stream.name.clone()).collect();
        Ok((build::runtime(self, settings, |stream| stream.is_open)?, left_out))
    }
}

#[cfg(test)]
pub(crate) mod tests;
