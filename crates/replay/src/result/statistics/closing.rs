//! What the statistics need beside the rows.

use std::path::PathBuf;

use iosonar_trace::DeviceId;

use crate::address::device_map::DeviceMap;
use crate::address::placement::Geometry;
use crate::issuer::LoopCounters;
use crate::pipeline::prepare::PrepareStats;

/// What the statistics need beside the rows.
#[derive(Clone, Copy, Debug)]
pub struct Closing<'a> {
    /// Of the load.
    pub fed: &'a PrepareStats,
    /// Of the loop.
    pub counters: &'a LoopCounters,
    /// Where the load's devices went.
    pub map: &'a DeviceMap,
    /// The targets, in the order of their indices.
    pub targets: &'a [(PathBuf, Geometry)],
    /// Whether requests had times to keep.
    pub timed: bool,
    /// Whether the run came to its end.
    pub complete: bool,
}

impl Closing<'_> {
    pub(super) fn target_of(&self, device: u16) -> Option<&(PathBuf, Geometry)> {
        self.targets.get(usize::from(self.map.target_of(DeviceId(device))?))
    }

    /// How many times a device of the load is as large as its target.
    pub(super) fn wrap_factor(&self, device: u16) -> Option<f64> {
        let (_, geometry) = self.target_of(device)?;
        let reach = self.fed.device_extents.get(usize::from(device)).copied().unwrap_or(0);
        Some(reach as f64 / geometry.sectors as f64)
    }
}
