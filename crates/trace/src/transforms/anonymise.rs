//! A load that tells how a storage was used, but not by whom and where.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use siphasher::sip::SipHasher24;

use crate::error::Result;
use crate::metadata::{Device, Metadata, Source as Origin};
use crate::permutation::Permutation;
use crate::request::{Comm, Request};
use crate::units::{Sector, Sectors};
use crate::words::{Form, Param, Settings, Takes, Unset};

use super::counted::{Counted, Source};
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Form {
        name: "anonymise",
        about: "Permutes regions of the device and process numbers, replaces names, forgets where the load came from",
        details: "Within a region nothing changes: what is sequential, overlapping or used again stays so. Requests that\n\
                  cross a region's border are cut there. Device names, process names, the source's path and preamble and\n\
                  the wall-clock time are replaced or dropped; of the transforms in front of it the file tells the names,\n\
                  not the settings. Times and sizes are kept, and may tell someone who knows them already.\n\
                  Whoever knows the key can undo it: unless it is set, it is drawn by chance and forgotten.",
        params: &[
            Param {
                name: "region",
                takes: Takes::Sectors,
                unset: Unset::Default("64M"),
                help: "how large the regions are",
            },
            Param {
                name: "key",
                takes: Takes::Secret,
                unset: Unset::Means("chance"),
                help: "a secret, to treat several loads alike",
            },
        ],
        example: "anonymise region=16M",
    },
    // The device's size decides which regions there are; it is known in advance, or from reading everything.
    needs: Needs::Whole,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let region = settings.sectors("region").0;
    if region == 0 {
        return Err("a region must have at least one sector".into());
    }
    let key = match settings.optional_text("key") {
        // As when the variable is unset that was to stand there.
        Some(text) if text.trim().is_empty() => {
            return Err("the key is empty, and no secret: leave key= out to have one drawn by chance".into());
        }
        Some(text) => {
            let half = |which| {
                let mut hasher = SipHasher24::new_with_keys(0, which);
                hasher.write(text.as_bytes());
                hasher.finish()
            };
            (half(0), half(1))
        }
        // The standard library's hash tables draw their keys from the system's source of chance.
        None => (RandomState::new().hash_one(0), RandomState::new().hash_one(1)),
    };
    Ok(Box::new(move |rows| apply(rows, region, key)))
}

fn apply(rows: Rows, region: u64, key: (u64, u64)) -> Result<Rows> {
    let (rows, ends) = ends(rows)?;
    let regions = ends
        .iter()
        .enumerate()
        // Only whole regions change places: the part of one at the end stays there.
        .map(|(device, end)| Permutation::new(end / region, (key.0 ^ device as u64, key.1)))
        .collect();
    let metadata = rows.metadata().clone();
    let numbers = Permutation::new(PIDS - 1, (key.0, !key.1));
    let source = Anonymised { rows, region, regions, numbers, key, rest: None, metadata };
    Ok(Counted::with_metadata(source, forget))
}

/// The most that Linux' process numbers can be (`PID_MAX_LIMIT`). 0 is nobody's, and stays.
const PIDS: u64 = 4_194_304;

fn forget(metadata: &mut Metadata) {
    metadata.source = Origin { format: metadata.source.format.clone(), ..Origin::default() };
    metadata.epoch_unix_ns = None;
    metadata.run = None;
    metadata.notices.clear();
    for (index, device) in metadata.devices.iter_mut().enumerate() {
        *device = Device { name: format!("disk{index}"), ..*device };
    }
}

/// For each device where it ends: its size where that is known, else behind its last request. Reads the load as a whole
/// only if it must.
fn ends(rows: Rows) -> Result<(Rows, Vec<u64>)> {
    let metadata = rows.metadata();
    let sizes: Option<Vec<u64>> = metadata.devices.iter().map(|device| device.sectors).collect();
    if let Some(sizes) = sizes {
        return Ok((rows, sizes));
    }
    if rows.is_surveyed() && metadata.devices.len() == 1 {
        let end = metadata.span.max_end_sector;
        return Ok((rows, vec![end]));
    }
    super::adjacent::ends_by_reading(rows)
}

struct Anonymised {
    rows: Rows,
    region: u64,
    regions: Vec<Permutation>,
    numbers: Permutation,
    key: (u64, u64),
    /// What is left of a request that crosses a border, before it is changed.
    rest: Option<Request>,
    /// What is told of the load: nothing that its source says as it is read.
    metadata: Metadata,
}

impl Source for Anonymised {
    fn next(&mut self) -> Result<Option<Request>> {
        let next = match self.rest.take() {
            Some(rest) => Some(rest),
            None => self.rows.next()?,
        };
        let Some(mut request) = next else {
            self.metadata.counts = self.rows.metadata().counts.clone();
            self.metadata.complete = self.rows.metadata().complete;
            return Ok(None);
        };
        let inside = request.sector.0 % self.region;
        let room = self.region - inside;
        if request.sectors.0 > room {
            let (sector, sectors) = (request.sector + Sectors(room), Sectors(request.sectors.0 - room));
            self.rest = Some(Request { sector, sectors, ..request });
            request.sectors = Sectors(room);
        }
        if let Some(regions) = self.regions.get(usize::from(request.device.0)) {
            request.sector = Sector(regions.map(request.sector.0 / self.region) * self.region + inside);
        }
        request.pid = request.pid.map(|pid| match pid {
            0 => 0,
            pid => 1 + self.numbers.map(u64::from(pid) - 1) as u32,
        });
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
