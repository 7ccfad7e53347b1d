//! Removes what identifies the origin of a load.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::error::Result;
use crate::model::metadata::{Device, Metadata, Source as Origin};
use crate::model::request::{Comm, Request};
use crate::model::units::{Sector, Sectors};
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, secret};
use crate::permutation::Permutation;
use crate::text::human;

use super::counted::{Counted, Source};
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "anonymise",
        about: "Permutes regions of the device and process numbers, replaces names, removes the origin",
        details: "Nothing changes within a region; requests that cross its border are cut there. The device is\n\
                  rounded up to full regions (if its size is unknown, to a power of two). If it has so few regions\n\
                  that none moves, a warning says so: set a smaller region. Names of devices and processes, path and\n\
                  preamble of the source, and the wall-clock time are replaced or dropped, and so are the settings\n\
                  of earlier transforms. Times and lengths stay, and may identify the load to someone who already\n\
                  knows them. The key can undo the permutation: unless it is set, it is random and not stored.",
        params: &[
            ParamSpec {
                name: "region",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("64M"),
                help: "size of a region",
            },
            ParamSpec {
                name: "key",
                takes: ParamType::Secret,
                default: ParamDefault::Described("random"),
                help: "a secret; the same key and region permute several loads alike, if their devices have the same order \
                       and size",
            },
        ],
        example: "anonymise region=16M",
    },
    // The number of regions depends on the device's size; if that is unknown, on all requests.
    needs: Needs::Whole,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let region = settings.sectors("region").0;
    if region == 0 {
        return Err("a region must have at least one sector".into());
    }
    let key = secret::key(settings)?;
    Ok(Box::new(move |rows| apply(rows, region, key)))
}

fn apply(rows: Rows, region: u64, key: (u64, u64)) -> Result<Rows> {
    let (rows, spaces) = spaces(rows, region)?;
    let regions = spaces.iter().enumerate();
    let regions: Vec<Permutation> =
        regions.map(|(device, regions)| Permutation::new(*regions, (key.0 ^ device as u64, key.1))).collect();
    let used = spaces.iter().zip(&regions).filter(|(count, _)| **count > 0);
    // A permutation of a few regions is the identity with a noticeable probability.
    let is_unmoved =
        |count: u64, regions: &Permutation| (0..count.min(1000)).all(|region| regions.map(region) == region);
    let unmoved = used.filter(|(count, regions)| is_unmoved(**count, regions)).count();
    let metadata = rows.metadata().clone();
    let numbers = Numbers::new(key);
    let source = Anonymised { rows, region, regions, numbers, key, rest: None, metadata };
    Ok(Counted::with_metadata(source, |metadata| {
        forget(metadata);
        for (device, regions) in metadata.devices.iter_mut().zip(&spaces) {
            // The last region, which may have been partial, may have moved.
            device.sectors = device.sectors.map(|_| regions.saturating_mul(region));
        }
        if unmoved > 0 {
            metadata.warning(format!(
                "anonymise: no position changed on {} of {} devices, which have too few regions of {region} sectors; set \
                 a smaller region=",
                human::count(unmoved as u64),
                human::count(metadata.devices.len() as u64)
            ));
        }
    }))
}

/// Linux process numbers are below this (`PID_MAX_LIMIT`). 0 is unknown, and stays.
const PIDS: u64 = 4_194_304;

/// A permutation of process numbers. Valid Linux numbers are mapped to valid ones.
struct Numbers {
    linux: Permutation,
    /// For the numbers from `PIDS` to 2³¹ − 1, which a table can hold.
    others: Permutation,
}

impl Numbers {
    fn new(key: (u64, u64)) -> Self {
        let others = (1 << 31) - PIDS;
        Self { linux: Permutation::new(PIDS - 1, (key.0, !key.1)), others: Permutation::new(others, (!key.0, key.1)) }
    }

    fn map(&self, pid: u32) -> u32 {
        let number = u64::from(pid);
        let mapped = match number {
            0 => 0,
            1..PIDS => 1 + self.linux.map(number - 1),
            _ => PIDS + self.others.map(number - PIDS),
        };
        mapped as u32
    }
}

fn forget(metadata: &mut Metadata) {
    metadata.source = Origin { format: metadata.source.format.clone(), ..Origin::default() };
    metadata.epoch_unix_ns = None;
    metadata.clocks = None;
    metadata.run = None;
    metadata.warnings.clear();
    for (index, device) in metadata.devices.iter_mut().enumerate() {
        *device = Device { name: format!("disk{index}"), ..*device };
    }
}

/// The number of regions to permute on each device. If its size is known, all of them, so that all loads of the device are
/// permuted alike. Otherwise those up to the last request, rounded up to a power of two, so that loads of one device whose
/// last request differs a little are usually permuted alike.
///
/// Reads the whole load only if it must.
fn spaces(rows: Rows, region: u64) -> Result<(Rows, Vec<u64>)> {
    let regions_of = |size: Option<u64>, end: u64| match size {
        Some(size) if end <= size => size.div_ceil(region),
        _ if end == 0 => 0,
        _ => end.div_ceil(region).checked_next_power_of_two().unwrap_or(u64::MAX),
    };
    let known = |rows: &Rows, ends: &[u64]| {
        let devices = rows.metadata().devices.iter();
        devices.zip(ends).map(|(device, &end)| regions_of(device.sectors, end)).collect()
    };
    let metadata = rows.metadata();
    let end = metadata.span.max_end_sector;
    let fits = |device: &Device| device.sectors.is_some_and(|size| end <= size);
    if rows.has_totals() && (metadata.devices.len() == 1 || metadata.devices.iter().all(fits)) {
        let spaces = known(&rows, &vec![end; metadata.devices.len()]);
        return Ok((rows, spaces));
    }
    let (rows, ends) = super::adjacent::ends_by_reading(rows)?;
    let spaces = known(&rows, &ends);
    Ok((rows, spaces))
}

struct Anonymised {
    rows: Rows,
    region: u64,
    regions: Vec<Permutation>,
    numbers: Numbers,
    key: (u64, u64),
    /// The rest of a request that was cut at a border, not yet permuted.
    rest: Option<Request>,
    /// Counts only: later warnings of the source may identify it.
    metadata: Metadata,
}

impl Source for Anonymised {
    fn next(&mut self) -> Result<Option<Request>> {
        let next = match self.rest.take() {
            Some(rest) => Some(rest),
            None => self.rows.next()?,
        };
        self.metadata.counts.clone_from(&self.rows.metadata().counts);
        self.metadata.complete = self.rows.metadata().complete;
        let Some(mut request) = next else { return Ok(None) };
        let inside = request.sector.0 % self.region;
        let room = self.region - inside;
        if request.sectors.0 > room {
            let (sector, sectors) = (request.sector + Sectors(room), Sectors(request.sectors.0 - room));
            self.rest = Some(Request { sector, sectors, ..request });
            request.sectors = Sectors(room);
        }
        if request.is_empty() {
            // Mapping sector 0 would reveal the target of the first region.
            request.sector = Sector(0);
        } else if let Some(regions) = self.regions.get(usize::from(request.device.0)) {
            request.sector = Sector(regions.map(request.sector.0 / self.region) * self.region + inside);
        }
        request.pid = request.pid.map(|pid| self.numbers.map(pid));
        if request.comm != Comm::default() {
            let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
            hasher.write(&request.comm.0);
            request.comm = Comm::new(&format!("p{:012x}", hasher.finish() >> 16));
        }
        Ok(Some(request))
    }

    fn upstream(&self) -> &Metadata {
        &self.metadata
    }

    fn has_all_devices(&self) -> bool {
        true
    }

    fn progress(&self) -> Option<f64> {
        self.rows.progress()
    }
}
