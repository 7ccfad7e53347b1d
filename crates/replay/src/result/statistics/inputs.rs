//! What the statistics need besides the rows.

use std::path::PathBuf;

use iosonar_device::geometry::Geometry;
use iosonar_trace::DeviceId;

use crate::address::device_map::DeviceMap;
use crate::advice::remedies::OtherIo;
use crate::issuer::LoopCounters;
use crate::pipeline::prepare::PrepareStats;

/// What the statistics need besides the rows.
#[derive(Clone, Copy, Debug)]
pub struct StatisticsInputs<'a> {
    /// Counts of the load's requests and lines.
    pub prepare_stats: &'a PrepareStats,
    /// Counts of the loop at its end; `None` if the run was killed before, so that counts made at the end are not known.
    pub loop_counters: Option<&'a LoopCounters>,
    /// Maps the load's devices to targets.
    pub map: &'a DeviceMap,
    /// The targets, by index.
    pub targets: &'a [(PathBuf, Geometry)],
    /// Whether requests had scheduled times.
    pub is_timed: bool,
    /// Whether requests, or some of them, waited for the completion of others: a closed loop or a program.
    pub waits_for_completions: bool,
    /// Whether the run reached its end.
    pub is_complete: bool,
    /// What the disk received beside the replay, if that is much.
    pub other_io: Option<&'a OtherIo>,
}

impl StatisticsInputs<'_> {
    pub(super) fn target_of(&self, device: u16) -> Option<&(PathBuf, Geometry)> {
        self.targets.get(usize::from(self.map.target_of(DeviceId(device))?))
    }

    /// How many times as large as its target a device of the load is.
    pub(super) fn wrap_factor(&self, device: u16) -> Option<f64> {
        let (_, geometry) = self.target_of(device)?;
        let end_sector = self.prepare_stats.device_extents.get(usize::from(device)).copied().unwrap_or(0);
        Some(end_sector as f64 / geometry.sectors as f64)
    }
}
