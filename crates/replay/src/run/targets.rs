//! Opens the targets of a run, maps the load's devices to them, and describes them in the footer.

use std::path::PathBuf;

use iosonar_device::geometry::Geometry;
use iosonar_device::node::is_same_file;
use iosonar_device::{Access, Device, Mode};
use iosonar_pacing::{Error, Result};
use iosonar_trace::human::block;
use iosonar_trace::run_info::{RunTarget, TargetKind};
use iosonar_trace::{self as trace, DeviceId, MAX_END_SECTOR, RunInfo, SECTOR_BYTES};

use super::Prescan;
use crate::address::device_map::{DeviceMap, Mapping, device_label, resolve};
use crate::address::router::Fit;
use crate::address::router::Routes;
use crate::address::router::Rules;
use crate::config::input_files;
use crate::config::options::Options;
use crate::engine::method::Method;

/// Opens each target once, even if it is given several times: devices of the load that share a target can overlap there.
/// `load_devices` are the devices known so far; `are_all` tells whether the load has no others.
pub fn open(options: &Options, load_devices: &[trace::Device], are_all: bool) -> Result<(Vec<Device>, DeviceMap)> {
    let access = match (options.target.rules.reads_only, options.target.force) {
        (true, _) => Access::Read,
        (false, true) => Access::Force,
        (false, false) => Access::Overwrite,
    };
    // An engine without I/O needs no --target: all devices of the load map to a dummy.
    let dummy = [Mapping { source: None, target: "none".into() }];
    let mappings = if options.target.targets.is_empty() { &dummy } else { options.target.targets.as_slice() };
    let mut paths: Vec<&PathBuf> = Vec::new();
    let mut indices = Vec::new();
    for mapping in mappings {
        let is_same = |path: &&PathBuf| **path == mapping.target || is_same_file(path, &mapping.target);
        let index = paths.iter().position(is_same).unwrap_or_else(|| {
            paths.push(&mapping.target);
            paths.len() - 1
        });
        indices.push(index as u16);
    }
    let names: Vec<_> = load_devices.iter().map(|device| device.name.as_str()).collect();
    // Check the names of SRC= before any device is opened.
    let map = resolve(mappings, &indices, &names, are_all)?;
    let Method { no_o_direct: cached, o_sync: sync, ring, .. } = options.method;
    let open_target = |path: &PathBuf| {
        if !options.method.has_device() {
            return Device::none(path, options.method.simulated_size().map(|bytes| bytes / SECTOR_BYTES));
        }
        let device = Device::open_with(path, access, Mode { cached, sync })?;
        // The path was checked before, but may name another file by now: check the open file.
        device.node().map_or(Ok(()), |node| input_files::check(options, path, node))?;
        if ring.poll {
            device.check_poll()?;
        }
        Ok(device)
    };
    let devices = paths.into_iter().map(open_target).collect::<Result<_>>()?;
    Ok((devices, map))
}

/// With `--fit reject`, refuses a load with requests beyond the end of their target.
pub fn check_fit(options: &Options, prescan: Option<&Prescan>, devices: &[Device], map: &DeviceMap) -> Result<()> {
    let Some(prescan) = prescan.filter(|_| options.target.rules.fit == Fit::Reject) else { return Ok(()) };
    for (number, &end_sector) in prescan.device_extents.iter().enumerate() {
        let Some(target) = map.target_of(DeviceId(number as u16)) else { continue };
        let Device { path, geometry, .. } = &devices[usize::from(target)];
        if end_sector > geometry.sectors {
            let name = prescan.devices.get(number).map_or("", |device| &device.name);
            return Err(Error::Options(format!(
                "{} of the load reaches up to sector {end_sector} ({}), but {} has only {} sectors ({}); choose a larger \
                 target or another --fit",
                device_label(number, name),
                block(end_sector.saturating_mul(SECTOR_BYTES)),
                path.display(),
                geometry.sectors,
                block(geometry.sectors * SECTOR_BYTES),
            )));
        }
    }
    Ok(())
}

/// Maps requests to targets and sectors.
pub fn routes(options: &Options, prescan: Option<&Prescan>, devices: &[Device], map: &DeviceMap) -> Routes {
    // Without a device of a known size, requests keep their positions.
    let has_size = options.method.has_device() || options.method.simulated_size().is_some();
    let fit = if has_size { options.target.rules.fit } else { Fit::Wrap };
    let rules = Rules { fit, ..options.target.rules };
    let targets = devices.iter().map(|device| device.geometry).collect();
    let capabilities = devices.iter().map(|device| device.capabilities).collect();
    Routes::new(targets, map.clone(), rules, prescan.map(extents).unwrap_or_default()).with_capabilities(capabilities)
}

/// The extents that `--fit scale` maps to the whole target: the size of each device of the load if it is known, so that
/// every window of a load is scaled by the same factor; else the highest end sector in the window.
fn extents(prescan: &Prescan) -> Vec<u64> {
    let size = |number: usize| prescan.devices.get(number).and_then(|device| device.sectors).unwrap_or(0);
    prescan.device_extents.iter().enumerate().map(|(number, &end_sector)| end_sector.max(size(number))).collect()
}

/// `run.targets` of the footer.
pub fn describe(devices: &[Device], map: &DeviceMap) -> Vec<RunTarget> {
    let described = devices.iter().enumerate().map(|(index, device)| {
        let (sources, others) = map.sources_of(index as u16);
        let sources: Vec<u64> = sources.into_iter().map(u64::from).collect();
        RunTarget { sources: sources.into(), others: others.into(), ..device.describe() }
    });
    described.collect()
}

/// Targets and map from a footer, to recover a run.
pub fn from_footer(run: &RunInfo) -> (Vec<(PathBuf, Geometry)>, DeviceMap) {
    let geometry = |target: &RunTarget| {
        let missing = if target.kind.known() == Some(&TargetKind::None) { MAX_END_SECTOR } else { 1 };
        let sectors = target.sectors.value().unwrap_or(missing);
        (target.path.text().unwrap_or_default().into(), Geometry { sectors, block_sectors: 1 })
    };
    let Some(targets) = run.targets.known() else {
        let target = run.target.known().cloned().unwrap_or_default();
        return (vec![geometry(&target)], DeviceMap::all_to_first());
    };
    let mut map = DeviceMap::default();
    for (index, target) in targets.iter().enumerate() {
        for &source in target.sources.list() {
            map.insert(Some(DeviceId(source as u16)), index as u16);
        }
        if target.others.value() == Some(true) {
            map.insert(None, index as u16);
        }
    }
    (targets.iter().map(geometry).collect(), map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_read_from_a_footer_equal_those_described_in_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let other = tempfile::NamedTempFile::new().unwrap();
        other.as_file().set_len(1 << 21).unwrap();
        let (file_path, other_path) = (file.path().display(), other.path().display());
        let options = Options::of(&format!("l -t {file_path} -t sdb={other_path} -t sdc={file_path} -o o --force"));
        let load_devices = ["sda", "sdb", "sdc"].map(|name| trace::Device { name: name.into(), sectors: None });
        let (devices, map) = open(&options, &load_devices, true).unwrap();
        assert_eq!(devices.len(), 2, "the same file is opened once");
        let targets = [0, 1, 2, 9].map(|device| map.target_of(DeviceId(device)));
        assert_eq!(targets, [Some(0), Some(1), Some(0), Some(0)]);
        let run = RunInfo { targets: describe(&devices, &map).into(), ..RunInfo::default() };
        let (read_targets, read_map) = from_footer(&run);
        assert_eq!(read_map, map);
        assert_eq!(read_targets.iter().map(|(_, g)| g.sectors).collect::<Vec<_>>(), [2048, 4096]);
        // Runs of earlier versions have only `target`.
        let target = RunTarget { path: "x".to_owned().into(), sectors: 8.into(), ..RunTarget::default() };
        let (read_targets, read_map) = from_footer(&RunInfo { target: target.into(), ..RunInfo::default() });
        assert_eq!((read_targets[0].1.sectors, read_map), (8, DeviceMap::all_to_first()));
    }
}
