//! Closes gaps between used regions.
//!
//! ```text
//!  before  |  ab        c           de |
//!  after   |abcde|
//! ```

use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::request::Request;
use crate::model::units::Sector;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::counted::Counted;
use super::spool::{Spool, SpoolReader};
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "dense",
        about: "Closes the gaps between used regions, so that the load fits on a smaller device",
        details: "Keeps the order and alignment of the regions; seeks shrink. Takes at most about 100 MB of memory:\n\
                  if there are too many regions for that, the smallest gaps stay, with a warning in the file.",
        params: &[
            ParamSpec {
                name: "align",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("4k"),
                help: "block size; regions consist of whole blocks",
            },
            ParamSpec {
                name: "gap",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("0"),
                help: "gaps up to this length stay",
            },
        ],
        example: "dense align=1M",
    },
    needs: Needs::Whole,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let (align, gap) = (settings.sectors("align").0, settings.sectors("gap").0);
    if align == 0 {
        return Err("align must be at least one sector".into());
    }
    Ok(Box::new(move |rows| apply(rows, align, gap, MAX_REGIONS)))
}

/// Most used regions in memory, over all devices.
const MAX_REGIONS: usize = 1 << 20;

fn apply(rows: Rows, align: u64, gap: u64, most: usize) -> Result<Rows> {
    let mut used: Vec<UsedRegions> = rows.metadata().devices.iter().map(|_| UsedRegions::new(align, gap)).collect();
    let mut share = (most / used.len().max(1)).max(2);
    let (spool, metadata) = Spool::of(rows, |_, request| {
        let device = usize::from(request.device.0);
        if device >= used.len() {
            // Devices may appear late.
            used.resize_with(device + 1, || UsedRegions::new(align, gap));
            share = (most / used.len()).max(2);
            used.iter_mut().for_each(|used| used.coarsen(share));
        }
        if !request.is_empty() {
            used[device].insert(request.sector.0, request.end().0);
            used[device].coarsen(share);
        }
        request
    })?;
    let largest_gap = used.iter().map(|used| used.gap).max().unwrap_or(gap);
    let maps: Vec<Map> = used.into_iter().map(Map::new).collect();
    let sizes: Vec<u64> = maps.iter().map(|map| map.size).collect();
    let change = move |mut request: Request| {
        if let Some(map) = maps.get(usize::from(request.device.0)) {
            request.sector = Sector(if request.is_empty() { 0 } else { map.place(request.sector.0) });
        }
        request
    };
    Ok(Counted::with_metadata(SpoolReader::new(spool, metadata, change), |metadata| {
        for (device, size) in metadata.devices.iter_mut().zip(&sizes) {
            device.sectors = Some(*size);
        }
        if largest_gap > gap {
            metadata.warning(format!(
                "dense: there are too many separate regions; gaps of up to {largest_gap} sectors stay"
            ));
        }
    }))
}

/// The used regions of a device: from each start to its end, more than `gap` apart.
struct UsedRegions {
    align: u64,
    gap: u64,
    regions: BTreeMap<u64, u64>,
}

impl UsedRegions {
    fn new(align: u64, gap: u64) -> Self {
        Self { align, gap, regions: BTreeMap::new() }
    }

    fn insert(&mut self, start: u64, end: u64) {
        let mut start = start - start % self.align;
        let mut end = end.checked_next_multiple_of(self.align).unwrap_or(u64::MAX);
        // Merge the new region with all that overlap it or are at most `gap` away.
        while let Some((&region, &region_end)) = self.regions.range(..=end.saturating_add(self.gap)).next_back() {
            if region_end.saturating_add(self.gap) < start {
                break;
            }
            if region <= start && region_end >= end {
                return;
            }
            self.regions.remove(&region);
            (start, end) = (start.min(region), end.max(region_end));
        }
        self.regions.insert(start, end);
    }

    /// While there are more than `most`, closes the smaller half of the gaps.
    fn coarsen(&mut self, most: usize) {
        while self.regions.len() > most {
            let starts = self.regions.keys().skip(1);
            let mut gaps: Vec<u64> = starts.zip(self.regions.values()).map(|(start, end)| start - end).collect();
            let middle = gaps.len() / 2;
            self.gap = *gaps.select_nth_unstable(middle).1;
            let regions = std::mem::take(&mut self.regions);
            let mut joined: Option<(u64, u64)> = None;
            for (start, end) in regions {
                joined = match joined {
                    Some((first, last)) if start - last <= self.gap => Some((first, end)),
                    Some((first, last)) => {
                        self.regions.insert(first, last);
                        Some((start, end))
                    }
                    None => Some((start, end)),
                };
            }
            self.regions.extend(joined);
        }
    }
}

/// Maps old positions to new ones.
struct Map {
    /// Old and new start of each region; sorted.
    regions: Vec<(u64, u64)>,
    size: u64,
}

impl Map {
    fn new(used: UsedRegions) -> Self {
        let mut size = 0;
        let mut regions = Vec::with_capacity(used.regions.len());
        for (start, end) in used.regions {
            regions.push((start, size));
            size += end - start;
        }
        Self { regions, size }
    }

    fn place(&self, sector: u64) -> u64 {
        let next = self.regions.partition_point(|(start, _)| *start <= sector);
        let (old, new) = self.regions[next - 1];
        new + (sector - old)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::transforms::tests::{all, load, requests};

    fn overlap(one: &Request, other: &Request) -> bool {
        one.sector < other.end() && other.sector < one.end()
    }

    proptest! {
            /// Holds for any limit on the number of regions.
            #[test]
            fn order_and_overlap_of_requests_are_kept(requests in requests(60, 10_000), align in 1_u64..20, gap in 0_u64..50, most in 2_usize..20) {
                let before: Vec<Request> = requests.into_iter().filter(|request| request.sectors.0 > 0).collect();
                let (after, metadata) = all(apply(load(before.clone()), align, gap, most).unwrap());
                prop_assert_eq!(before.len(), after.len());
                for (a, x) in before.iter().zip(&after) {
                    prop_assert_eq!(a.sector.0 % align, x.sector.0 % align);
                    prop_assert!(x.end().0 <= metadata.devices[usize::from(x.device.0)].sectors.unwrap());
                    for (b, y) in before.iter().zip(&after) {
                        if a.device == b.device {
                            prop_assert_eq!(a.sector.cmp(&b.sector), x.sector.cmp(&y.sector));
    prop_assert_eq!(overlap(a, b), overlap(x, y));
                        }
                    }
                }
            }

            /// Without a limit, the size is the number of used blocks.
            #[test]
            fn no_gap_is_left(requests in requests(60, 10_000), align in 1_u64..20) {
                let mut blocks = std::collections::BTreeSet::new();
                for request in requests.iter().filter(|request| request.device.0 == 0 && request.sectors.0 > 0) {
                    blocks.extend(request.sector.0 / align..request.end().0.div_ceil(align));
                }
                let (_, metadata) = all(apply(load(requests), align, 0, 1 << 20).unwrap());
                prop_assert_eq!(metadata.devices[0].sectors, Some(blocks.len() as u64 * align));
            }
        }
}
