//! Where a request of the load goes on the target: wrap-around, the border, alignment.

use iosonar_trace::{Outcome, SECTOR_BYTES, Sector, Sectors};
use serde::{Deserialize, Serialize};

/// What to do with a request that is not aligned to the target's logical blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Align {
    /// Widen it to whole blocks.
    #[default]
    Expand,
    /// Leave it out, and count it.
    Reject,
}

/// The size and the blocks of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Its size in sectors: a whole number of logical blocks.
    pub sectors: u64,
    /// The smallest unit of I/O, in sectors.
    pub block_sectors: u64,
}

impl Geometry {
    /// Of a target of that many bytes; a last, partial block is not used.
    pub fn new(bytes: u64, logical_block_bytes: u64) -> Self {
        let block_sectors = (logical_block_bytes / SECTOR_BYTES).max(1);
        let sectors = bytes / SECTOR_BYTES / block_sectors * block_sectors;
        Self { sectors, block_sectors }
    }
}

/// A place on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Whether it was widened to whole blocks.
    pub widened: bool,
}

impl Geometry {
    /// Finds the place of a request, or why it has none.
    ///
    /// A request behind the end wraps around: its first sector is taken modulo the target's size. One that crosses the
    /// end afterwards can't be done as the single request that it was, and is left out; one that ends exactly there is
    /// done.
    pub fn place(&self, sector: Sector, sectors: Sectors, align: Align) -> Result<Place, Outcome> {
        if self.sectors == 0 || sectors.0 > self.sectors {
            return Err(Outcome::BeyondEnd);
        }
        let wrapped = sector.0 % self.sectors;
        let end = wrapped + sectors.0;
        if end > self.sectors {
            return Err(Outcome::BeyondEnd);
        }
        if sectors.0 == 0 {
            // Nothing to widen: a request without data must not grow one.
            return Ok(Place { sector: Sector(wrapped), sectors, widened: false });
        }
        let first = wrapped / self.block_sectors * self.block_sectors;
        let last = end.div_ceil(self.block_sectors) * self.block_sectors;
        let widened = (first, last) != (wrapped, end);
        if widened && align == Align::Reject {
            return Err(Outcome::Unaligned);
        }
        Ok(Place { sector: Sector(first), sectors: Sectors(last - first), widened })
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
    fn wraps_around_and_stops_at_the_border() {
        let g = Geometry::new(1000 * 512, 512);
        assert_eq!(place(g, 992, 8, Align::Expand), Ok((992, 8, false)), "ends exactly at the end");
        assert_eq!(place(g, 1000, 8, Align::Expand), Ok((0, 8, false)), "wraps");
        assert_eq!(place(g, 5993, 8, Align::Expand), Err(Outcome::BeyondEnd), "crosses the end after wrapping");
        assert_eq!(place(g, 0, 1001, Align::Expand), Err(Outcome::BeyondEnd), "larger than the target");
    }

    #[test]
    fn widens_to_blocks_or_rejects() {
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

    proptest! {
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
