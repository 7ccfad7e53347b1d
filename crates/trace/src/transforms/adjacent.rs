//! Several loads side by side on one device.

use std::path::Path;

use crate::error::Result;
use crate::model::metadata::{Device, Metadata};
use crate::model::request::{DeviceId, Request};
use crate::params::{Definition, ParamDefault, ParamSpec, Settings};

use super::counted::{Counted, PerRow, Step, place};
use super::merge::{Merge, Numbering, Order, WITH, files};
use super::spool::{Spool, SpoolReader};
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "adjacent",
        about: "Puts loads, and the devices of each, side by side on one device, each in its own region",
        details: "Keeps the times. A region ends after the last used block of 8 sectors.",
        params: &[ParamSpec { default: ParamDefault::Described("none: joins only the load's own devices"), ..WITH }],
        example: "adjacent with=b.load.gz,c.load.parquet",
    },
    needs: Needs::Whole,
    length: kept,
    build,
};

/// Regions begin at multiples of this many sectors: 4 KiB.
const ALIGN: u64 = 8;

fn build(settings: &Settings) -> Built {
    let files = files(settings)?;
    Ok(Box::new(move |rows| {
        let mut loads = vec![rows];
        for file in &files {
            loads.push(crate::open_load(Path::new(file))?);
        }
        apply(loads)
    }))
}

fn apply(loads: Vec<Rows>) -> Result<Rows> {
    let mut shifted = Vec::new();
    let mut regions = Vec::new();
    let mut next = 0_u64;
    for (number, load) in loads.into_iter().enumerate() {
        let (load, ends) = used_ends(load)?;
        let mut starts = Vec::new();
        for (device, end) in load.metadata().devices.iter().zip(ends) {
            let end = next.saturating_add(end.checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX));
            let name = if device.name.is_empty() { "" } else { &format!(", {}", device.name) };
            regions.push(format!("adjacent: load {}{name} is at sectors {next} to {end}", number + 1));
            starts.push(next);
            next = end;
        }
        let step = move |request: Request| {
            if request.is_empty() {
                return Step::Emit(Request { device: DeviceId(0), ..request });
            }
            let start = starts.get(usize::from(request.device.0)).copied().unwrap_or_default();
            match place(start.checked_add(request.sector.0), request.sectors) {
                Some(sector) => Step::Emit(Request { device: DeviceId(0), sector, ..request }),
                None => Step::Outside("adjacent", "with="),
            }
        };
        shifted.push(Counted::with_metadata(PerRow::new(load, step), |metadata| metadata.devices.truncate(1)));
    }
    let merged = Merge::new(shifted, Numbering::Same, Order::OfTime)?;
    Ok(Counted::with_metadata(merged, |metadata| {
        metadata.devices = vec![Device { name: "adjacent".into(), sectors: Some(next) }];
        regions.into_iter().for_each(|line| metadata.warning(line));
    }))
}

/// The load, and for each device the end of its used sectors. Reads the load first unless its totals are known.
fn used_ends(rows: Rows) -> Result<(Rows, Vec<u64>)> {
    if rows.has_totals() && rows.metadata().devices.len() == 1 {
        let end = rows.metadata().span.max_end_sector;
        return Ok((rows, vec![end]));
    }
    ends_by_reading(rows)
}

/// Like [`used_ends`], but always reads the load.
pub fn ends_by_reading(rows: Rows) -> Result<(Rows, Vec<u64>)> {
    let mut ends = vec![0; rows.metadata().devices.len()];
    let (spool, metadata): (Spool, Metadata) = Spool::of(rows, |_, request| {
        let device = usize::from(request.device.0);
        if device >= ends.len() {
            // Devices may appear late.
            ends.resize(device + 1, 0);
        }
        if !request.is_empty() {
            ends[device] = request.end().0.max(ends[device]);
        }
        request
    })?;
    ends.resize(ends.len().max(metadata.devices.len()), 0);
    Ok((Counted::on_same_devices(SpoolReader::new(spool, metadata, |request| request)), ends))
}
