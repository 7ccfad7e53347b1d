//! What a program is, and what a run of it chooses.

use iosonar_pacing::payload::DataSpec;
use iosonar_trace::Sectors;

/// A program: its text is valid with the defaults of its parameters.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) file: String,
    pub(super) source: String,
    pub(super) name: String,
    pub(super) about: String,
    pub(super) parameters: Vec<(String, String)>,
    pub(super) device_names: Vec<String>,
    pub(super) streams: Vec<StreamInfo>,
    /// The texts of files of scripts, by the names that the streams use.
    pub(super) scripts: std::collections::BTreeMap<String, String>,
    /// The loads that streams are.
    pub(super) loads: super::recorded::Loads,
    pub(super) left_out: Vec<String>,
    /// Where its streams come from, if it was converted.
    pub(super) origins: Option<crate::origin::Origins>,
}

/// A stream of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// The name of the stream.
    pub name: String,
    /// How many instances it has, with the parameters and the scale of the run, if it has settings.
    pub instances: u64,
    /// Whether its requests do not wait for completions, so that a load can hold them.
    pub is_open: bool,
    /// Whether it asks for requests at times, not only when others have completed.
    pub has_timers: bool,
    /// Whether it can run ahead of time: a load, or a script that waits for nothing, and sends no messages.
    pub runs_ahead: bool,
    /// Whether it ends by itself: it has `requests` or `end`, or is a load.
    pub ends: bool,
    /// The data of its writes, if it says it.
    pub data: Option<DataSpec>,
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
    /// Whether some requests may change what the device holds: writes, discards; whatever a script or a load may ask for.
    pub changes: bool,
    /// About the bytes of memory that its instances need.
    pub memory: u64,
    /// The most requests of closed streams at a time.
    pub closed_at_once: u64,
}

/// Where the devices of a program are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Side by side on one target of this size.
    Together(Sectors),
    /// Each on a target of its own, with these sizes, in the order of [`Program::device_names`].
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
