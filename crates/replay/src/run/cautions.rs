//! What is said before a run because of its load and its targets: gathers what [`advice::before`] judges.

use std::time::Duration;

use iosonar_trace::{Metadata, SECTOR_BYTES};

use super::Survey;
use crate::advice::before::{self, Reach};
use crate::clock::wall;
use crate::device::Device;
use crate::device::queue::Queue;
use crate::device::sample::{Bounds, Sampled, sample};
use crate::device::sysfs;
use crate::options::Options;

/// Little enough to be no burden on any device, and enough to see an area of a few percent.
const SAMPLES: Bounds = Bounds { samples: 512, time: Duration::from_millis(500) };

/// Looks at one target. `survey` and `load` tell what is going to be asked of it.
pub fn before(options: &Options, device: &Device, survey: Option<Survey>, load: &Metadata) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(rdev) = device.disk() {
        let (disk, queue) = (sysfs::disk_name(rdev).unwrap_or_default(), Queue::of(rdev));
        all.extend(before::scheduler(&disk, &queue));
        let longest = survey.map_or(0, |s| s.span.max_sectors * SECTOR_BYTES);
        all.extend(before::splitting(&disk, longest, &queue));
    }
    let reach = match &load.devices[..] {
        // A load that is changed on its way no longer fits its device.
        [one] if one.sectors.is_some() && options.edit.is_none() => one.sectors.map(Reach::Size),
        _ => survey.map(|s| Reach::AtLeast(s.span.max_end_sector)),
    };
    all.extend(reach.and_then(|reach| before::size(device.geometry.sectors, reach)));
    if !options.no_sample {
        all.extend(before::never_written(&device.path, &sampled(device, survey)));
    }
    all
}

/// Reads a few places of the part that the load reaches.
fn sampled(device: &Device, survey: Option<Survey>) -> Sampled {
    let reached = survey.map_or(u64::MAX, |s| s.span.max_end_sector).clamp(1, device.geometry.sectors);
    let block = device.geometry.block_sectors * SECTOR_BYTES;
    sample(&device.file, reached.saturating_mul(SECTOR_BYTES), block, SAMPLES, wall().0 as u64)
}
