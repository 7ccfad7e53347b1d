//! The run's targets: opened each once, joined with the load's devices, and described in the run's footer.

use std::path::PathBuf;

use iosonar_trace::human::block;
use iosonar_trace::run_info::RunTarget;
use iosonar_trace::{self as trace, DeviceId, RunInfo, SECTOR_BYTES};

use super::Prescan;
use crate::address::device_map::{DeviceMap, Mapping, device_label, resolve};
use crate::address::placement::{Fit, Geometry};
use crate::address::router::Routes;
use crate::config::input_files as apart;
use crate::config::method::Method;
use crate::config::options::Options;
use crate::config::target::Rules;
use crate::config::validation::is_one;
use crate::device::{Access, Device, Mode};
use crate::error::{Error, Result};

/// Opens the targets, each once however often it was named: two devices of the load on one target share it, so that their
/// overlaps are seen. `known` are the load's devices; `is_read` says whether that is all of them.
pub fn open(options: &Options, known: &[trace::Device], is_read: bool) -> Result<(Vec<Device>, DeviceMap)> {
    let access = match (options.target.rules.reads_only, options.target.force) {
        (true, _) => Access::Read,
        (false, true) => Access::Force,
        (false, false) => Access::Overwrite,
    };
    // Without a device to open, requests of all devices of the load go to a stand-in.
    let none = [Mapping { source: None, target: "none".into() }];
    let mappings = if options.target.targets.is_empty() { &none } else { options.target.targets.as_slice() };
    let mut paths: Vec<&PathBuf> = Vec::new();
    let mut indices = Vec::new();
    for mapping in mappings {
        let same = |path: &&PathBuf| **path == mapping.target || is_one(path, &mapping.target);
        let index = paths.iter().position(same).unwrap_or_else(|| {
            paths.push(&mapping.target);
            paths.len() - 1
        });
        indices.push(index as u16);
    }
    let names: Vec<_> = known.iter().map(|device| device.name.as_str()).collect();
    // Names first: a slip in one of them is no reason to look at any device.
    let map = resolve(mappings, &indices, &names, is_read)?;
    let Method { no_o_direct: cached, o_sync: sync, ring, .. } = options.method;
    let one = |path: &PathBuf| {
        if !options.method.has_device() {
            return Device::none(path);
        }
        let device = Device::open_with(path, access, Mode { cached, sync })?;
        // The path was asked before; this is what is open.
        device.node().map_or(Ok(()), |node| apart::check(options, path, node))?;
        if ring.poll {
            device.check_poll()?;
        }
        Ok(device)
    };
    let devices = paths.into_iter().map(one).collect::<Result<_>>()?;
    Ok((devices, map))
}

/// Refuses a load that reaches beyond its target, where that was asked for.
pub fn check_fit(options: &Options, prescan: Option<&Prescan>, devices: &[Device], map: &DeviceMap) -> Result<()> {
    let Some(prescan) = prescan.filter(|_| options.target.rules.fit == Fit::Reject) else { return Ok(()) };
    for (number, &reach) in prescan.device_extents.iter().enumerate() {
        let Some(target) = map.target_of(DeviceId(number as u16)) else { continue };
        let Device { path, geometry, .. } = &devices[usize::from(target)];
        if reach > geometry.sectors {
            let name = prescan.devices.get(number).map_or("", |device| &device.name);
            return Err(Error::Options(format!(
                "{} of the load reaches up to sector {reach} ({}), and {} has {} sectors ({}); choose a larger target, or \
                 another --fit",
                device_label(number, name),
                block(reach.saturating_mul(SECTOR_BYTES)),
                path.display(),
                geometry.sectors,
                block(geometry.sectors * SECTOR_BYTES),
            )));
        }
    }
    Ok(())
}

/// The rules by which requests find their places.
pub fn routes(options: &Options, prescan: Option<&Prescan>, devices: &[Device], map: &DeviceMap) -> Routes {
    // Where there is no device, positions are those of the load.
    let fit = if options.method.has_device() { options.target.rules.fit } else { Fit::Wrap };
    let rules = Rules { fit, ..options.target.rules };
    let targets = devices.iter().map(|device| device.geometry).collect();
    let capabilities = devices.iter().map(|device| device.capabilities).collect();
    Routes::new(targets, map.clone(), rules, prescan.map(extents).unwrap_or_default()).with_capabilities(capabilities)
}

/// What becomes the whole of a target: the size of the load's device, where it is known, so that all parts of a load are
/// scaled alike; else what the part at hand reaches.
fn extents(prescan: &Prescan) -> Vec<u64> {
    let size = |number: usize| prescan.devices.get(number).and_then(|device| device.sectors).unwrap_or(0);
    prescan.device_extents.iter().enumerate().map(|(number, &reach)| reach.max(size(number))).collect()
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

/// Targets and map from a footer, for a run that is recovered.
pub fn described(run: &RunInfo) -> (Vec<(PathBuf, Geometry)>, DeviceMap) {
    let one = |target: &RunTarget| {
        let sectors = target.sectors.value().unwrap_or(1);
        (target.path.text().unwrap_or_default().into(), Geometry { sectors, block_sectors: 1 })
    };
    let Some(described) = run.targets.known() else {
        let target = run.target.known().cloned().unwrap_or_default();
        return (vec![one(&target)], DeviceMap::all_to_first());
    };
    let mut map = DeviceMap::default();
    for (index, target) in described.iter().enumerate() {
        for &source in target.sources.list() {
            map.insert(Some(DeviceId(source as u16)), index as u16);
        }
        if target.others.value() == Some(true) {
            map.insert(None, index as u16);
        }
    }
    (described.iter().map(one).collect(), map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_described_is_understood_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let other = tempfile::NamedTempFile::new().unwrap();
        other.as_file().set_len(1 << 21).unwrap();
        let (file_path, other_path) = (file.path().display(), other.path().display());
        let options = Options::of(&format!("l -t {file_path} -t sdb={other_path} -t sdc={file_path} -o o --force"));
        let known: Vec<_> = ["sda", "sdb", "sdc"].map(|name| trace::Device { name: name.into(), sectors: None }).into();
        let (devices, map) = open(&options, &known, true).unwrap();
        assert_eq!(devices.len(), 2, "the same file is opened once");
        let targets = [0, 1, 2, 9].map(|device| map.target_of(DeviceId(device)));
        assert_eq!(targets, [Some(0), Some(1), Some(0), Some(0)]);
        let run = RunInfo { targets: describe(&devices, &map).into(), ..RunInfo::default() };
        let (again, same) = described(&run);
        assert_eq!(same, map);
        assert_eq!(again.iter().map(|(_, g)| g.sectors).collect::<Vec<_>>(), [2048, 4096]);
        // As runs of earlier versions have it.
        let target = RunTarget { path: "x".to_owned().into(), sectors: 8.into(), ..RunTarget::default() };
        let (one, all) = described(&RunInfo { target: target.into(), ..RunInfo::default() });
        assert_eq!((one[0].1.sectors, all), (8, DeviceMap::all_to_first()));
    }
}
