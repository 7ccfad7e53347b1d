//! Every position once, in random order, and then again in another order.

use iosonar_trace::params::Definition;
use iosonar_trace::permutation::Permutation;
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "shuffled",
        about: "Every position once, in random order, then again in another order",
        details: "As fio's random map with one size. Positions are multiples of the largest size, rounded up to the alignment; a\n\
                  smaller rest is left out.",
        params: &[],
        example: "shuffled",
    },
    build: |_, space, _| {
        let blocks = (space.span / space.align / space.largest).max(1);
        Ok(Box::new(Shuffled { space, blocks, next: 0, order: Permutation::new(blocks, (0, 0)) }))
    },
};

struct Shuffled {
    space: Space,
    /// Positions of one pass.
    blocks: u64,
    next: u64,
    /// The order of this pass.
    order: Permutation,
}

impl Positions for Shuffled {
    fn next(&mut self, _: Sectors, rng: &mut Rng) -> Sector {
        if self.next == 0 {
            self.order = Permutation::new(self.blocks, (rng.random(), rng.random()));
        }
        let block = self.order.map(self.next);
        self.next = (self.next + 1) % self.blocks;
        self.space.sector(block * self.space.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{build, first, parse};
    use super::*;

    #[test]
    fn each_pass_has_every_position_once_in_an_order_of_its_own() {
        let slots = first("shuffled", 1000, 2000);
        let (one, other) = slots.split_at(1000);
        assert_ne!(one, other);
        for pass in [one, other] {
            let mut pass = pass.to_vec();
            pass.sort_unstable();
            assert!(pass.into_iter().eq(0..1000));
        }
    }

    #[test]
    fn positions_are_multiples_of_the_largest_size() {
        let space = Space::new(Sectors(100), Sectors(8), Sectors(30)).unwrap();
        let mut shuffled = build(&parse("shuffled").unwrap(), space, 1).unwrap();
        let mut rng = <Rng as rand::SeedableRng>::seed_from_u64(5);
        let mut sectors: Vec<u64> = (0..3).map(|_| shuffled.next(Sectors(30), &mut rng).0).collect();
        sectors.sort_unstable();
        assert_eq!(sectors, [0, 32, 64]);
    }
}
