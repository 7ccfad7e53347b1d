//! Programs: whole workloads as text, in TOML.
//!
//! A [`Program`] has streams. Each stream is *open*: its requests come at times that do not depend on the device; or *closed*:
//! each instance of it asks for the next request when the last one has completed. [`Program::runtime`] makes a filament of
//! each instance. `docs/workloads.md` describes the text; [`PROGRAM`], [`DEVICE`], [`STREAM`] and [`STEP`] list its keys.

mod build;
mod instance;
mod keys;
mod region;

pub use keys::{DEVICE, PROGRAM, STEP, STREAM};

use iosonar_trace::{Device, Sectors};

use crate::filament::Runtime;

/// A program: its text is valid with the defaults of its parameters.
#[derive(Clone, Debug)]
pub struct Program {
    file: String,
    source: String,
    name: String,
    about: String,
    parameters: Vec<(String, String)>,
    streams: Vec<StreamInfo>,
    remarks: Vec<String>,
}

/// A stream of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// Its name.
    pub name: String,
    /// Instances at scale 1.
    pub instances: u64,
    /// Whether its requests do not wait for completions, so that a load can hold them.
    pub is_open: bool,
    /// Whether the scale multiplies its instances.
    pub is_per_scale: bool,
    /// Whether it ends by itself: it has `requests` or `end`.
    pub ends: bool,
}

/// What the requests of a program need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The largest read or write.
    pub largest: Sectors,
    /// Whether some requests read.
    pub reads: bool,
    /// Whether some requests write data.
    pub writes: bool,
    /// The most requests of closed streams at a time.
    pub closed_at_once: u64,
}

/// Where the devices of a program are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Side by side on one target of this size.
    Together(Sectors),
    /// Each on a target of its own, with these sizes, in the order of [`Program::devices`].
    Separate(Vec<Sectors>),
}

/// What a run chooses.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Multiplies instances, and sizes that grow with it.
    pub scale: u64,
    /// Values of parameters, instead of their defaults.
    pub set: Vec<(String, String)>,
    /// Where the devices are.
    pub layout: Layout,
}

impl Settings {
    /// Seed 1, scale 1, all parameters at their defaults.
    pub fn new(layout: Layout) -> Self {
        Self { seed: 1, scale: 1, set: Vec::new(), layout }
    }
}

impl Program {
    /// Parses a program. `file` names it in errors.
    ///
    /// # Errors
    /// If the text is not a program, with the line and the key.
    pub fn parse(file: &str, source: &str) -> Result<Self, String> {
        build::described(file, source)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One sentence about it.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Its text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What a conversion to this program left out, a line each.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The same with these remarks.
    #[must_use]
    pub fn with_remarks(self, remarks: Vec<String>) -> Self {
        Self { remarks, ..self }
    }

    /// Its parameters with their defaults.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }

    /// Its streams, in the order of their numbers in a run.
    pub fn streams(&self) -> &[StreamInfo] {
        &self.streams
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

    /// A filament of each instance of each stream.
    ///
    /// # Errors
    /// If a parameter is unknown, or the text is not valid with these settings.
    pub fn runtime(&self, settings: &Settings) -> Result<Runtime, String> {
        build::runtime(self, settings, |_| true)
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
