//! Which loop issues a request.

use iosonar_pacing::in_flight::MAX_LOOPS;

use crate::io::PreparedIo;

/// Extents of 4 MiB, as log2 of sectors: long enough that few requests cross an end, as 0.1 % of those of 4 KiB and 3 % of
/// those of 128 KiB, and short enough that all loops have requests of a sequential load that is prepared 4096 requests
/// ahead.
const EXTENT_BITS: u32 = 13;

/// A set of loops: a bit for each of [`MAX_LOOPS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopSet(u64);

impl LoopSet {
    /// The numbers of its loops, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let first = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(first)
        })
    }

    /// Number of loops.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether it has no loop.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The division of the targets among the loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shards {
    /// Each target belongs to a loop.
    ByTarget {
        /// Number of loops.
        issuers: usize,
    },
    /// Each extent of each target belongs to a loop.
    ByExtent {
        /// Number of loops.
        issuers: usize,
    },
    /// The next request goes to the loop that has the fewest: nothing is kept apart between loops.
    ByTurn {
        /// Number of loops.
        issuers: usize,
    },
}

impl Shards {
    /// The division for this many loops: by target, unless there are fewer targets than loops.
    pub fn new(issuers: usize, targets: usize) -> Self {
        debug_assert!((1..=MAX_LOOPS).contains(&issuers));
        if targets >= issuers { Self::ByTarget { issuers } } else { Self::ByExtent { issuers } }
    }

    /// Number of loops.
    pub fn issuers(&self) -> usize {
        let (Self::ByTarget { issuers } | Self::ByExtent { issuers } | Self::ByTurn { issuers }) = *self;
        issuers
    }

    /// Whether a request can concern several loops.
    pub fn has_shared_requests(&self) -> bool {
        matches!(self, Self::ByExtent { issuers } if *issuers > 1)
    }

    /// The loop that issues a request: that of its first sector, or the one with the most `room` for it.
    #[inline]
    pub fn owner(&self, io: &PreparedIo, room: impl Fn(usize) -> usize) -> usize {
        match *self {
            Self::ByTarget { issuers } => usize::from(io.target) % issuers,
            Self::ByExtent { issuers } => loop_of(issuers, io.target, io.sector.0 >> EXTENT_BITS),
            Self::ByTurn { issuers } => (0..issuers).rev().max_by_key(|&number| room(number)).unwrap_or(0),
        }
    }

    /// All loops whose parts of the target a request of this owner touches.
    #[inline]
    pub fn loops(&self, io: &PreparedIo, owner: usize) -> LoopSet {
        let Self::ByExtent { issuers } = *self else { return LoopSet(1 << owner) };
        let (first, last) = (io.sector.0 >> EXTENT_BITS, (io.sector.0 + io.sectors.0.max(1) - 1) >> EXTENT_BITS);
        // Each group of as many extents as there are loops has an extent of every loop.
        if last - first >= 2 * issuers as u64 {
            return LoopSet(u64::MAX >> (MAX_LOOPS - issuers));
        }
        LoopSet((first..=last).fold(0, |set, extent| set | 1 << loop_of(issuers, io.target, extent)))
    }
}

/// Each loop has one extent of each group of as many extents as there are loops, so that a sequential load is balanced. The
/// first loop of a group is pseudo-random, so that a stride is balanced as well.
#[inline]
fn loop_of(issuers: usize, target: u16, extent: u64) -> usize {
    let group = (extent / issuers as u64) ^ (u64::from(target) << 48);
    let turn = (group.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) + extent;
    (turn % issuers as u64) as usize
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Sector, Sectors};
    use proptest::prelude::*;

    use super::*;
    use crate::io::testing::write;

    const EXTENT: u64 = 1 << EXTENT_BITS;

    fn at(target: u16, sector: u64, sectors: u64) -> PreparedIo {
        PreparedIo { target, sector: Sector(sector), sectors: Sectors(sectors), ..write(0, 0, 0, 8) }
    }

    #[test]
    fn targets_are_divided_among_loops_unless_there_are_too_few() {
        let shards = Shards::new(2, 3);
        assert!(!shards.has_shared_requests());
        assert_eq!([0, 1, 2].map(|target| shards.owner(&at(target, 0, 8), |_| 0)), [0, 1, 0]);
        assert_eq!(shards.loops(&at(1, 0, 1 << 30), 1).iter().collect::<Vec<_>>(), [1]);
        assert!(Shards::new(2, 1).has_shared_requests() && !Shards::new(1, 1).has_shared_requests());
    }

    #[test]
    fn sequential_and_strided_loads_use_all_loops_alike() {
        for issuers in [2, 3, 8, 64] {
            let shards = Shards::new(issuers, 1);
            for stride in [1, 2, 7, issuers as u64, 64, 4096] {
                let mut counts = vec![0_u64; issuers];
                for extent in 0..issuers as u64 * 100 {
                    counts[shards.owner(&at(0, extent * stride * EXTENT, 8), |_| 0)] += 1;
                }
                let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
                assert!(least > 50 && most < 150, "{issuers} loops, stride {stride}: {counts:?}");
            }
        }
    }

    #[test]
    fn by_turn_a_request_goes_where_there_is_most_room() {
        let shards = Shards::ByTurn { issuers: 3 };
        let owner = |room: [usize; 3]| shards.owner(&at(0, 0, 8), |number| room[number]);
        assert_eq!([[5, 5, 5], [4, 5, 5], [4, 4, 5], [4, 4, 4]].map(owner), [0, 1, 2, 0]);
        assert!(!shards.has_shared_requests());
    }

    proptest! {
        #[test]
        fn the_loops_of_a_request_are_the_owners_of_its_sectors(
            issuers in 1_usize..=64, target in 0_u16..3, sector in 0_u64..40 * EXTENT, sectors in 0_u64..200 * EXTENT,
        ) {
            let shards = Shards::ByExtent { issuers };
            let io = at(target, sector, sectors);
            let ends = (sector..sector + sectors.max(1)).step_by(EXTENT as usize).chain([sector + sectors.max(1) - 1]);
            let mut expected: Vec<_> = ends.map(|sector| shards.owner(&at(target, sector, 1), |_| 0)).collect();
            expected.sort_unstable();
            expected.dedup();
            let loops = shards.loops(&io, shards.owner(&io, |_| 0));
            prop_assert_eq!(loops.iter().collect::<Vec<_>>(), expected);
            prop_assert_eq!(loops.len() as usize, loops.iter().count());
            prop_assert!(loops.iter().any(|number| number == shards.owner(&io, |_| 0)));
        }
    }
}
