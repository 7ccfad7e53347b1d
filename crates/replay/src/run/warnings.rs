//! What is said before a run because of its load and its targets: gathers what [`advice::before`] judges.

use std::time::Duration;

use iosonar_trace::{DeviceId, Metadata, SECTOR_BYTES};

use super::Prescan;
use crate::address::device_map::DeviceMap;
use crate::address::placement::Fit;
use crate::advice::before::{self, LoadExtent};
use crate::config::options::Options;
use crate::device::Device;
use crate::device::queue::queue_of;
use crate::device::sample::{Bounds, Sampled, sample};
use crate::device::sysfs;
use crate::schedule::clock::wall;

/// Little enough to be no burden on any device, and enough to see an area of a few percent.
const SAMPLES: Bounds = Bounds { samples: 512, time: Duration::from_millis(500) };

/// Looks at the targets. `prescan` and `load` tell what is going to be asked of them.
pub fn before(
    options: &Options,
    devices: &[Device],
    map: &DeviceMap,
    prescan: Option<&Prescan>,
    load: &Metadata,
) -> Vec<String> {
    if !options.method.has_device() {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (target, device) in devices.iter().enumerate() {
        if let Some(reader) = &device.reader {
            all.push(format!(
                "{}: {reader}: what it reads changes, and it may show in the times",
                device.path.display()
            ));
        }
        if let Some(rdev) = device.disk() {
            let (disk, queue) = (sysfs::disk_name(rdev).unwrap_or_default(), queue_of(rdev));
            all.extend(before::scheduler(&disk, &queue));
            let longest = prescan.map_or(0, |s| s.longest_moved * SECTOR_BYTES);
            all.extend(before::splitting(&disk, longest, &queue));
        }
        let reach = reach(options, map, target as u16, prescan, load);
        if options.target.rules.fit == Fit::Wrap {
            all.extend(reach.and_then(|reach| before::size(device.geometry.sectors, reach)));
        }
        if !options.target.no_sample && options.method.does_io() {
            all.extend(before::never_written(&device.path, &sampled(device, reach)));
        }
    }
    all
}

/// How large a target should be for the devices of the load that go there, as far as that is known.
fn reach(
    options: &Options,
    map: &DeviceMap,
    target: u16,
    prescan: Option<&Prescan>,
    load: &Metadata,
) -> Option<LoadExtent> {
    let goes_there = |number: usize| map.target_of(DeviceId(number as u16)) == Some(target);
    let sizes = load.devices.iter().enumerate().filter(|(number, _)| goes_there(*number));
    let sizes: Option<Vec<u64>> = sizes.map(|(_, device)| device.sectors).collect();
    if let Some(largest) = sizes.and_then(|sizes| sizes.into_iter().max())
        // A load that is changed on its way no longer fits its devices.
        && options.edit.is_none()
    {
        return Some(LoadExtent::DeviceSize(largest));
    }
    let prescan = prescan?;
    let device_extents = prescan.device_extents.iter().enumerate().filter(|(number, _)| goes_there(*number));
    if let Some((_, &most)) = device_extents.max_by_key(|(_, reach)| **reach) {
        return Some(LoadExtent::AtLeast(most));
    }
    (0..prescan.devices.len().max(1)).all(goes_there).then_some(LoadExtent::AtLeast(prescan.span.max_end_sector))
}

/// Reads a few places of the part that the load reaches.
fn sampled(device: &Device, reach: Option<LoadExtent>) -> Sampled {
    let (LoadExtent::DeviceSize(reached) | LoadExtent::AtLeast(reached)) =
        reach.unwrap_or(LoadExtent::AtLeast(u64::MAX));
    let reached = reached.clamp(1, device.geometry.sectors);
    let block = device.geometry.block_sectors * SECTOR_BYTES;
    sample(&device.file, reached.saturating_mul(SECTOR_BYTES), block, SAMPLES, wall().0 as u64)
}
