//! Programs: whole workloads as text, in TOML.
//!
//! A [`Program`] has streams. Each stream is *open*: its requests come at times that do not depend on the device; or *closed*:
//! each instance of it submits the next request when the last one has completed. [`Program::place`] reads it with the
//! settings of a run, and [`Placement::runtime`] makes a filament of each instance. `docs/workloads.md` describes the text; [`PROGRAM`], [`DEVICE`], [`STREAM`] and [`STEP`] list its keys.

mod build;
mod devices;
mod instance;
mod keys;
mod memory;
mod messages;
mod model;
mod parts;
mod placement;
mod plan;
mod recipe;
mod recorded;
mod scripted;
mod shares;
mod step;
mod stream;

pub use keys::{DEVICE, PROGRAM, STEP, STREAM};
pub use model::{Demand, Layout, Program, Settings, StreamInfo};
pub use placement::{Part, Placement};
pub use recipe::Recipe;

use std::path::PathBuf;

use crate::origin::Origins;

impl Program {
    /// Parses a program. `file` names it in errors.
    ///
    /// # Errors
    /// If the text is not a program, with the line and the key.
    pub fn parse(file: &str, source: &str) -> Result<Self, String> {
        build::described(file, source, None)
    }

    /// Parses the text to which a job file was converted: errors name that. `left_out` is what the conversion left out.
    ///
    /// # Errors
    /// If the job file has options that no program can express.
    pub fn converted(file: &str, source: &str, origins: Origins, left_out: Vec<String>) -> Result<Self, String> {
        Ok(Self { left_out, ..build::described(file, source, Some(origins))? })
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

    /// Its streams with the defaults of its parameters, in the order of their numbers in a run.
    pub fn streams(&self) -> &[StreamInfo] {
        &self.streams
    }

    /// Whether some of its streams ask for requests at times, not only when others have completed.
    pub fn has_timers(&self) -> bool {
        self.streams.iter().any(|stream| stream.has_timers)
    }

    /// The names of its devices.
    pub fn device_names(&self) -> &[String] {
        &self.device_names
    }

    /// The program with the settings of a run.
    ///
    /// # Errors
    /// If a parameter is unknown, the devices do not fit, or the text is not valid with these settings.
    pub fn place(&self, settings: &Settings) -> Result<Placement, String> {
        build::place(self, settings)
    }
}

#[cfg(test)]
pub(crate) mod tests;
