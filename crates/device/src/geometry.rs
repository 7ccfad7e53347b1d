//! The position of a request on its target: wrap-around, boundaries, alignment.

use clap::ValueEnum;
use iosonar_trace::{Outcome, SECTOR_BYTES, Sector, Sectors};
use serde::{Deserialize, Serialize};

/// What to do with a request that is not aligned to the target's logical blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Align {
    /// Widen them to whole blocks
    #[default]
    Expand,
    /// Leave them out, and count them
    Reject,
}

/// Size and block size of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Its size in sectors: a whole number of logical blocks.
    pub sectors: u64,
    /// The smallest unit of I/O, in sectors.
    pub block_sectors: u64,
}

impl Geometry {
    /// From the size in bytes; a partial last block is not used.
    pub fn new(bytes: u64, logical_block_bytes: u64) -> Self {
        let block_sectors = (logical_block_bytes / SECTOR_BYTES).max(1);
        let sectors = bytes / SECTOR_BYTES / block_sectors * block_sectors;
        Self { sectors, block_sectors }
    }
}

/// A range on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Whether it was widened to whole blocks.
    pub widened: bool,
}

impl Geometry {
    /// Places a request, or returns why it is left out. With `--fit scale`, the position was scaled before.
    ///
    /// A sector beyond the end wraps around: it is taken modulo the target's size. A request that then crosses the end is
    /// left out, because it cannot be issued as a single request.
    pub fn place(&self, sector: Sector, sectors: Sectors, align: Align) -> Result<Placement, Outcome> {
        if self.sectors == 0 || sectors.0 > self.sectors {
            return Err(Outcome::BeyondEnd);
        }
        let wrapped = sector.0 % self.sectors;
        let end = wrapped + sectors.0;
        if end > self.sectors {
            return Err(Outcome::BeyondEnd);
        }
        if sectors.0 == 0 {
            // A request without data is not widened.
            return Ok(Placement { sector: Sector(wrapped), sectors, widened: false });
        }
        let first = wrapped / self.block_sectors * self.block_sectors;
        let last = end.div_ceil(self.block_sectors) * self.block_sectors;
        let widened = (first, last) != (wrapped, end);
        if widened && align == Align::Reject {
            return Err(Outcome::Unaligned);
        }
        Ok(Placement { sector: Sector(first), sectors: Sectors(last - first), widened })
    }
}

/// Alignment that scaling preserves, in sectors: 4 KiB, the block size of most file systems.
const KEPT_ALIGNMENT: u64 = 8;

impl Geometry {
    /// Scales a sector from a device of `source_sectors` sectors to this target. Lengths do not change, so requests near
    /// the end move to just before the end. Alignment to 4 KiB is kept, because unaligned requests would cost the device
    /// more than the original ones.
    pub fn scale(&self, sector: Sector, sectors: Sectors, source_sectors: u64) -> Sector {
        let grain = if sector.0.is_multiple_of(KEPT_ALIGNMENT) {
            KEPT_ALIGNMENT.max(self.block_sectors)
        } else {
            self.block_sectors
        };
        let scaled = u128::from(sector.0) * u128::from(self.sectors) / u128::from(source_sectors.max(1));
        let last = self.sectors.saturating_sub(sectors.0);
        Sector(u64::try_from(scaled).unwrap_or(u64::MAX).min(last) / grain * grain)
    }

    /// Whether a request is entirely on the target.
    pub fn contains(&self, sector: Sector, sectors: Sectors) -> bool {
        sector.0.checked_add(sectors.0).is_some_and(|end| end <= self.sectors)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(geometry: Geometry, sector: u64, sectors: u64, align: Align) -> Result<(u64, u64, bool), Outcome> {
        geometry.place(Sector(sector), Sectors(sectors), align).map(|p| (p.sector.0, p.sectors.0, p.widened))
    }

    #[test]
    fn positions_wrap_around_and_requests_must_not_cross_the_end() {
        let g = Geometry::new(1000 * 512, 512);
        assert_eq!(place(g, 992, 8, Align::Expand), Ok((992, 8, false)), "ends exactly at the end");
        assert_eq!(place(g, 1000, 8, Align::Expand), Ok((0, 8, false)), "wraps");
        assert_eq!(place(g, 5993, 8, Align::Expand), Err(Outcome::BeyondEnd), "crosses the end after wrapping");
        assert_eq!(place(g, 0, 1001, Align::Expand), Err(Outcome::BeyondEnd), "larger than the target");
    }

    #[test]
    fn unaligned_requests_are_widened_or_rejected() {
        let g = Geometry::new(1 << 20, 4096);
        assert_eq!(place(g, 9, 1, Align::Expand), Ok((8, 8, true)));
        assert_eq!(place(g, 15, 2, Align::Expand), Ok((8, 16, true)));
        assert_eq!(place(g, 15, 2, Align::Reject), Err(Outcome::Unaligned));
        assert_eq!(place(g, 16, 8, Align::Reject), Ok((16, 8, false)));
        assert_eq!(place(g, 9, 0, Align::Expand), Ok((9, 0, false)), "no data, nothing to widen");
    }

    #[test]
    fn a_partial_last_block_is_not_used() {
        assert_eq!(Geometry::new(4096 * 3 + 1024, 4096).sectors, 24);
    }

    #[test]
    fn positions_scale_to_the_whole_target() {
        let g = Geometry::new(1000 * 512, 512);
        let scale = |sector, sectors, source_sectors| g.scale(Sector(sector), Sectors(sectors), source_sectors).0;
        assert_eq!([scale(0, 8, 2000), scale(800, 8, 2000), scale(1001, 1, 2000)], [0, 400, 500], "half as large");
        assert_eq!(scale(1992, 8, 2000), 992, "the last request ends at the end");
        assert_eq!([scale(8, 8, 500), scale(248, 8, 500)], [16, 496], "twice as large");
        assert_eq!(scale(24, 8, 2000), 8, "what was aligned to 4 KiB stays so");
        assert_eq!(Geometry::new(1000 * 512, 4096).scale(Sector(9), Sectors(1), 1000).0, 8, "whole blocks");
    }

    proptest! {
        #[test]
        fn a_scaled_request_lies_on_the_target(
            blocks in 1u64..100, shift in 0u32..4, source_sectors in 1u64..1 << 40, at in 0.0f64..1.0, sectors in 0u64..100,
        ) {
            let g = Geometry::new((blocks * 512) << shift, 512 << shift);
            let sector = Sector((source_sectors as f64 * at) as u64);
            if sectors <= g.sectors {
                let sectors = Sectors(sectors);
                prop_assert!(g.contains(g.scale(sector, sectors, source_sectors), sectors));
            }
        }

        #[test]
        fn every_place_lies_on_the_target_and_covers_the_request(
            blocks in 1u64..100, shift in 0u32..4, sector in any::<u64>(), sectors in 0u64..2000,
        ) {
            let g = Geometry::new((blocks * 512) << shift, 512 << shift);
            if let Ok(p) = g.place(Sector(sector), Sectors(sectors), Align::Expand) {
                prop_assert!(p.sector.0 + p.sectors.0 <= g.sectors);
                prop_assert!(sectors == 0 || p.sector.0 % g.block_sectors == 0);
                prop_assert_eq!(p.sectors.0 % g.block_sectors, 0);
                let wrapped = sector % g.sectors;
                prop_assert!(p.sector.0 <= wrapped && wrapped + sectors <= p.sector.0 + p.sectors.0);
            }
        }
    }
}
