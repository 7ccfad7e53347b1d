//! Warnings before a run: collects the facts about load and targets that [`advice::before`](crate::advice::before) checks.

use std::time::Duration;

use iosonar_device::Device;
use iosonar_device::queue::queue_of;
use iosonar_device::sample::{Bounds, ZeroSample, sample};
use iosonar_device::sysfs;
use iosonar_pacing::clock::wall;
use iosonar_pacing::depth::MAX_DEPTH;
use iosonar_trace::{DeviceId, Metadata, SECTOR_BYTES, human};
use iosonar_workload::program::Demand;

use super::Prescan;
use super::queues::bytes_at_once;
use crate::address::device_map::DeviceMap;
use crate::address::router::Fit;
use crate::advice::before::{self, LoadExtent};
use crate::config::options::Options;
use crate::config::plan::Plan;

/// Few enough reads for any device, and enough to find a never-written area of a few percent.
const SAMPLES: Bounds = Bounds { samples: 512, time: Duration::from_millis(500) };

/// Checks the targets against the load.
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
    let mut warnings = Vec::new();
    let mut queues = Vec::new();
    let writes = !options.target.rules.reads_only && prescan.is_none_or(|prescan| prescan.requests > prescan.reads);
    for (target, device) in devices.iter().enumerate() {
        if let Some(reader) = &device.reader {
            warnings.push(format!(
                "{}: {reader}: its data changes under that reader, whose I/O may affect the latencies",
                device.path.display()
            ));
        }
        if *options.pacing.repeat > 1 && options.method.does_io() && writes {
            warnings.push(before::repeated(&device.path));
        }
        if let Some(rdev) = device.disk() {
            let (disk, queue) = (sysfs::disk_name(rdev).unwrap_or_default(), queue_of(rdev));
            let longest = prescan.map_or(0, |prescan| prescan.longest_transfer * SECTOR_BYTES);
            warnings.extend(before::splitting(&disk, longest, &queue));
            queues.push((disk, queue));
        }
        let extent = load_extent(options, map, target as u16, prescan, load);
        if options.target.rules.fit == Fit::Wrap {
            let is_dense = options.edit.as_ref().is_some_and(|edit| edit.has("dense"));
            let warning = extent.and_then(|extent| before::target_size(device.geometry.sectors, extent, is_dense));
            warnings.extend(warning);
        }
        if !options.target.no_sample && options.method.does_io() {
            warnings.extend(before::never_written(&device.path, &sample_target(device, extent)));
        }
    }
    warnings.extend(before::schedulers(queues.iter().map(|(disk, queue)| (disk.as_str(), queue))));
    warnings
}

/// A program that needs much memory.
pub fn memory(demand: &Demand) -> Option<String> {
    const MUCH: u64 = 1 << 30;
    let needed = human::block(demand.memory);
    (demand.memory >= MUCH).then(|| format!("the instances of the program need about {needed} of memory"))
}

/// A closed program whose requests do not all fit in the depth.
pub fn depth(plan: &Plan, demand: &Demand) -> Option<String> {
    let depth = plan.depth.requests as u64;
    let limit = if plan.options.issuing.bottleneck as u64 == depth { "--bottleneck" } else { "--depth" };
    let remedy = match depth == MAX_DEPTH as u64 {
        true => "have fewer at a time in the program".to_owned(),
        false => format!("raise {limit}"),
    };
    (demand.closed_at_once > depth).then(|| {
        format!(
            "the program may have {} at a time, but {limit} lets {} to the target; {remedy}, or it waits in the replayer",
            human::counted(demand.closed_at_once, "request"),
            human::count(depth)
        )
    })
}

/// A closed program whose data does not fit in the buffers.
pub fn buffers(plan: &Plan, demand: &Demand, bytes: u64) -> Option<String> {
    let needed = bytes_at_once(plan, demand);
    (plan.options.method.has_device() && needed > bytes).then(|| {
        format!(
            "the program may have {} of up to {} at a time, more than {} MiB of buffers hold; use --buffers {}, or some wait \
             in the replayer",
            human::counted(demand.closed_at_once, "request"),
            human::bytes(demand.largest.bytes()),
            bytes >> 20,
            needed.div_ceil(1 << 20)
        )
    })
}

/// The size of the largest device of the load that maps to a target, as far as it is known.
fn load_extent(
    options: &Options,
    map: &DeviceMap,
    target: u16,
    prescan: Option<&Prescan>,
    load: &Metadata,
) -> Option<LoadExtent> {
    let is_mapped = |number: usize| map.target_of(DeviceId(number as u16)) == Some(target);
    let sizes = load.devices.iter().enumerate().filter(|(number, _)| is_mapped(*number));
    let sizes: Option<Vec<u64>> = sizes.map(|(_, device)| device.sectors).collect();
    if let Some(largest) = sizes.and_then(|sizes| sizes.into_iter().max())
        // --edit may move requests beyond the end of their device.
        && options.edit.is_none()
    {
        return Some(LoadExtent::DeviceSize(largest));
    }
    let prescan = prescan?;
    let device_extents = prescan.device_extents.iter().enumerate().filter(|(number, _)| is_mapped(*number));
    if let Some(highest) = device_extents.map(|(_, &end_sector)| end_sector).max() {
        return Some(LoadExtent::AtLeast(highest));
    }
    let is_only_target = (0..prescan.devices.len().max(1)).all(is_mapped);
    is_only_target.then_some(LoadExtent::AtLeast(prescan.span.max_end_sector))
}

/// Samples the part of the target that the load accesses.
fn sample_target(device: &Device, extent: Option<LoadExtent>) -> ZeroSample {
    let sectors = extent.map_or(u64::MAX, LoadExtent::sectors).clamp(1, device.geometry.sectors);
    let block = device.geometry.block_sectors * SECTOR_BYTES;
    sample(&device.file, sectors.saturating_mul(SECTOR_BYTES), block, SAMPLES, wall().0 as u64)
}
