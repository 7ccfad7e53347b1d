//! Sparse space, closed up.
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
use super::held::{Again, Held};
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "dense",
        about: "Closes the gaps between the places that are used, so that the load fits on a smaller device",
        details: "Order and alignment of the places are kept; distances shrink, and with them seeks. Besides the temporary\n\
                  file it takes at most about 100 MB of memory: where more places than that are apart, the smallest gaps\n\
                  between them stay, and the file says so.",
        params: &[
            ParamSpec {
                name: "align",
                takes: ParamType::Sectors,
                unset: ParamDefault::Default("8"),
                help: "places are taken in blocks of this size, and stay aligned to it",
            },
            ParamSpec {
                name: "gap",
                takes: ParamType::Sectors,
                unset: ParamDefault::Default("0"),
                help: "gaps up to this length stay open",
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
    Ok(Box::new(move |rows| apply(rows, align, gap, MOST_PIECES)))
}

/// Pieces of used space that are kept in memory, over all devices.
const MOST_PIECES: usize = 1 << 20;

fn apply(rows: Rows, align: u64, gap: u64, most: usize) -> Result<Rows> {
    let mut used: Vec<Used> = rows.metadata().devices.iter().map(|_| Used::new(align, gap)).collect();
    let mut share = (most / used.len().max(1)).max(2);
    let (held, metadata) = Held::of(rows, |_, request| {
        let device = usize::from(request.device.0);
        if device >= used.len() {
            // One that nobody knew of in front.
            used.resize_with(device + 1, || Used::new(align, gap));
            share = (most / used.len()).max(2);
            used.iter_mut().for_each(|used| used.coarsen(share));
        }
        if !request.has_no_place() {
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
            request.sector = Sector(if request.has_no_place() { 0 } else { map.place(request.sector.0) });
        }
        request
    };
    Ok(Counted::with_metadata(Again::new(held, metadata, change), |metadata| {
        for (device, size) in metadata.devices.iter_mut().zip(&sizes) {
            device.sectors = Some(*size);
        }
        if largest_gap > gap {
            metadata.notice(format!("dense: so many places are apart that gaps of up to {largest_gap} sectors stayed"));
        }
    }))
}

/// The pieces of a device that are used: from each start to its end, more than `gap` apart.
struct Used {
    align: u64,
    gap: u64,
    pieces: BTreeMap<u64, u64>,
}

impl Used {
    fn new(align: u64, gap: u64) -> Self {
        Self { align, gap, pieces: BTreeMap::new() }
    }

    fn insert(&mut self, start: u64, end: u64) {
        let mut start = start - start % self.align;
        let mut end = end.checked_next_multiple_of(self.align).unwrap_or(u64::MAX);
        // All pieces that overlap the new one, or are no more than the gap away, become one with it.
        while let Some((&piece, &piece_end)) = self.pieces.range(..=end.saturating_add(self.gap)).next_back() {
            if piece_end.saturating_add(self.gap) < start {
                break;
            }
            if piece <= start && piece_end >= end {
                return;
            }
            self.pieces.remove(&piece);
            (start, end) = (start.min(piece), end.max(piece_end));
        }
        self.pieces.insert(start, end);
    }

    /// Joins pieces over their smallest gaps, until there are at most half of what is allowed.
    fn coarsen(&mut self, most: usize) {
        while self.pieces.len() > most {
            let starts = self.pieces.keys().skip(1);
            let mut gaps: Vec<u64> = starts.zip(self.pieces.values()).map(|(start, end)| start - end).collect();
            let middle = gaps.len() / 2;
            self.gap = *gaps.select_nth_unstable(middle).1;
            let pieces = std::mem::take(&mut self.pieces);
            let mut joined: Option<(u64, u64)> = None;
            for (start, end) in pieces {
                joined = match joined {
                    Some((first, last)) if start - last <= self.gap => Some((first, end)),
                    Some((first, last)) => {
                        self.pieces.insert(first, last);
                        Some((start, end))
                    }
                    None => Some((start, end)),
                };
            }
            self.pieces.extend(joined);
        }
    }
}

/// Where each piece goes.
struct Map {
    /// Where a piece starts, and where it starts now; sorted.
    pieces: Vec<(u64, u64)>,
    size: u64,
}

impl Map {
    fn new(used: Used) -> Self {
        let mut size = 0;
        let mut pieces = Vec::with_capacity(used.pieces.len());
        for (start, end) in used.pieces {
            pieces.push((start, size));
            size += end - start;
        }
        Self { pieces, size }
    }

    fn place(&self, sector: u64) -> u64 {
        let behind = self.pieces.partition_point(|(start, _)| *start <= sector);
        let (start, now) = self.pieces[behind - 1];
        now + (sector - start)
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
            /// However few pieces are allowed: what was apart stays apart, in the same order; what was one place stays one.
            #[test]
            fn places_are_joined_never(requests in requests(60, 10_000), align in 1_u64..20, gap in 0_u64..50, most in 2_usize..20) {
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

            /// With room for all pieces, the size is the number of blocks that are used.
            #[test]
            fn nothing_is_left_open(requests in requests(60, 10_000), align in 1_u64..20) {
                let mut blocks = std::collections::BTreeSet::new();
                for request in requests.iter().filter(|request| request.device.0 == 0 && request.sectors.0 > 0) {
                    blocks.extend(request.sector.0 / align..request.end().0.div_ceil(align));
                }
                let (_, metadata) = all(apply(load(requests), align, 0, 1 << 20).unwrap());
                prop_assert_eq!(metadata.devices[0].sectors, Some(blocks.len() as u64 * align));
            }
        }
}
