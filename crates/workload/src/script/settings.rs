//! What a stream says about its script, and what is known of a script before it runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use iosonar_trace::{DeviceId, Nanos, Sectors};

use crate::filament::FilamentId;

/// The most instances of a stream that is a script.
pub const MAX_INSTANCES: u64 = 100_000;

/// Requests, timers and messages of an instance at a time.
pub const DEPTH: u32 = 64;

/// The most requests, timers and messages of an instance at a time.
pub const MAX_DEPTH: u64 = 65_536;

/// The largest request of a script that does not say otherwise.
pub const LARGEST: Sectors = Sectors(2048);

/// A part of a device, where requests of a script go.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// The device that it is on.
    pub device: DeviceId,
    /// The first sector of the first instance.
    pub first: u64,
    /// From there to that of the next instance; 0 if all have the same area.
    pub stride: u64,
    /// Of an instance.
    pub size: u64,
}

/// A device that the script may name.
#[derive(Clone, Debug)]
pub struct NamedDevice {
    /// The name that the script uses.
    pub name: String,
    /// All of it.
    pub area: Area,
}

/// Another stream that is a script, to which messages can be sent.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    /// Its first filament; `None` if it is not part of the run.
    pub first: Option<FilamentId>,
    /// How many it has.
    pub instances: u32,
}

/// What a stream says about its script.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The region of the stream, where its requests go.
    pub area: Area,
    /// All devices.
    pub devices: Vec<NamedDevice>,
    /// Instances of the stream.
    pub instances: u32,
    /// Requests, timers and messages of an instance at a time.
    pub depth: u32,
    /// The largest request that the script may issue.
    pub largest: Sectors,
    /// Parameters of the program.
    pub set: BTreeMap<String, String>,
    /// The streams that are scripts.
    pub streams: BTreeMap<String, Receiver>,
    /// The seed of all random numbers of the run.
    pub seed: u64,
}

/// When instances run.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// From this time on an instance submits no more requests.
    pub end: Nanos,
    /// The number of the stream, from 0.
    pub stream: u16,
}

/// What a script does, as far as it is known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// It has no handler of completions and of messages, so its requests have times that do not depend on the device.
    pub is_open: bool,
    /// It may read.
    pub reads: bool,
    /// It may write data.
    pub writes: bool,
    /// It may send messages.
    pub sends: bool,
}

/// The guarded value: a panic elsewhere does not change it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
