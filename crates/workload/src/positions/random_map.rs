//! Every block once, by a map of the blocks, as fio does it with requests of several sizes.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::runs::{LENGTH, Starts};
use super::{Draw, Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "random-map",
        about: "Every block once, in random order; a request ends before a used block",
        details: "fio's random map for several sizes: the first unused block (of the alignment) from a random one on. A request that\n\
                  would reach a used block becomes shorter, and so does the mean. When all are used, the map is emptied. It needs\n\
                  one bit for each block. With `random` or `length`, the other requests start where the one before ended; the\n\
                  map is then also emptied when they reach the end of the space, or have covered as much as it holds.",
        params: &[
            ParamSpec {
                name: "random",
                takes: ParamType::Share,
                default: ParamDefault::Value("100%"),
                help: "share of the requests whose block is drawn",
            },
            LENGTH,
        ],
        example: "random-map",
    },
    build: |settings, space, _| {
        Ok(Box::new(RandomMap { space, starts: Starts::of(settings)?, map: None, next: 0, covered: 0 }))
    },
};

/// The memory of the map.
pub(super) fn bytes(space: Space) -> u64 {
    (space.span / space.align).div_ceil(8)
}

struct RandomMap {
    space: Space,
    starts: Starts,
    /// Made for the first request, as a program is also checked on devices that are larger than any.
    map: Option<Map>,
    /// The sector after the last request.
    next: u64,
    /// Sectors of all requests since the map was emptied.
    covered: u64,
}

impl RandomMap {
    fn empty(&mut self) {
        (self.map, self.next, self.covered) = (None, 0, 0);
    }

    /// A request at an unused block, up to a used one.
    fn draw_block(&mut self, draw: &mut Draw<'_>, rng: &mut Rng) -> (Sector, Sectors) {
        let Space { span, align, .. } = self.space;
        let blocks = (span / align).max(1);
        let drawn = rng.random_range(0..blocks);
        let map = self.map.get_or_insert_with(|| Map::new(blocks));
        let first = map.free_from(drawn).or_else(|| map.free_from(0)).unwrap_or_else(|| {
            *map = Map::new(blocks);
            self.covered = 0;
            drawn
        });
        let sectors = draw(self.space.room(first)).unwrap_or_default();
        let wanted = sectors.0.div_ceil(align).max(1).min(blocks - first);
        let count = (1..wanted).find(|n| map.is_used(first + n)).unwrap_or(wanted);
        (first..first + count).for_each(|block| map.use_up(block));
        (self.space.sector(first), sectors.min(Sectors((count * align).min(span - first * align))))
    }
}

impl Positions for RandomMap {
    fn next(&mut self, sectors: Sectors, rng: &mut Rng) -> Sector {
        // The whole length must fit.
        let last = self.space.sector(self.space.slots_for(sectors) - 1);
        self.next_request(sectors, rng).0.min(last)
    }

    fn next_request(&mut self, sectors: Sectors, rng: &mut Rng) -> (Sector, Sectors) {
        self.next_fitting(&mut |room| Some(sectors.min(room)), rng)
    }

    fn next_fitting(&mut self, draw: &mut Draw<'_>, rng: &mut Rng) -> (Sector, Sectors) {
        if self.covered >= self.space.span {
            self.empty();
        }
        let (sector, sectors) = loop {
            let room = self.space.span - self.next;
            if self.starts.next(rng) || room == 0 {
                break self.draw_block(draw, rng);
            }
            match draw(Sectors(room)) {
                Some(sectors) => break (Sector(self.next), sectors),
                // From the beginning some size fits.
                None => self.empty(),
            }
        };
        self.next = sector.0 + sectors.0;
        self.covered += sectors.0;
        (sector, sectors)
    }
}

/// Which blocks were used: a bit for each; and above each 64 bits a bit that says whether all of them are set, and so on.
struct Map(Vec<Vec<u64>>);

impl Map {
    fn new(blocks: u64) -> Self {
        let (mut levels, mut bits) = (Vec::new(), blocks);
        loop {
            let mut words = vec![0; bits.div_ceil(64) as usize];
            // Bits behind the end are no blocks.
            if let Some(last) = words.last_mut().filter(|_| bits % 64 > 0) {
                *last = u64::MAX << (bits % 64);
            }
            bits = words.len() as u64;
            levels.push(words);
            if bits == 1 {
                return Self(levels);
            }
        }
    }

    fn is_used(&self, block: u64) -> bool {
        self.0[0][(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    fn use_up(&mut self, block: u64) {
        let mut bit = block;
        for words in &mut self.0 {
            let word = &mut words[(bit / 64) as usize];
            *word |= 1 << (bit % 64);
            if *word != u64::MAX {
                return;
            }
            bit /= 64;
        }
    }

    /// The first unused block from this one on.
    fn free_from(&self, block: u64) -> Option<u64> {
        self.unset_from(0, block)
    }

    fn unset_from(&self, level: usize, bit: u64) -> Option<u64> {
        let words = self.0.get(level)?;
        let (word, inside) = ((bit / 64) as usize, bit % 64);
        let unset = !words.get(word)? & u64::MAX << inside;
        if unset != 0 {
            return Some(word as u64 * 64 + u64::from(unset.trailing_zeros()));
        }
        let word = self.unset_from(level + 1, word as u64 + 1)?;
        Some(word * 64 + u64::from(words[word as usize].trailing_ones()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::RngExt;

    use super::super::{build, first, parse};
    use super::{Map, Sectors, Space};

    proptest! {
        #[test]
        fn a_map_agrees_with_a_list_of_flags(blocks in 1_u64..9000, used in prop::collection::vec(0.0..1.0, 0..300), from in 0.0..1.0) {
            let mut map = Map::new(blocks);
            let mut flags = vec![false; blocks as usize];
            let place = |share: f64| (share * blocks as f64) as u64;
            for share in used {
                // Runs, so that words and levels fill up.
                for block in place(share)..(place(share) + 200).min(blocks) {
                    map.use_up(block);
                    flags[block as usize] = true;
                }
            }
            let expected = (place(from)..blocks).find(|block| !flags[*block as usize]);
            prop_assert_eq!(map.free_from(place(from)), expected);
        }

        #[test]
        fn a_pass_has_every_block_once(blocks in 1_u64..3000, seed: u64) {
            let (align, largest) = (8, 64.min(blocks * 8));
            let space = Space::new(Sectors(blocks * align + 5), Sectors(align), Sectors(largest)).unwrap();
            let mut positions = build(&parse("random-map").unwrap(), space, 1).unwrap();
            let mut rng = crate::Rng::new(u128::from(seed), 1);
            let mut seen = vec![0; blocks as usize];
            for _ in 0..2 {
                let mut left = blocks;
                while left > 0 {
                    let asked = Sectors(rng.random_range(1..=largest));
                    let (sector, sectors) = positions.next_request(asked, &mut rng);
                    prop_assert!(sectors <= asked && sectors.0 > 0 && sector.0 % align == 0);
                    for block in sector.0 / align..(sector + sectors).0.div_ceil(align) {
                        seen[block as usize] += 1;
                        left -= 1;
                    }
                }
            }
            prop_assert!(seen.iter().all(|times| *times == 2));
        }
    }

    #[test]
    fn requests_of_one_block_are_shuffled() {
        let mut slots = first("random-map", 1000, 1000);
        assert!(!slots.is_sorted());
        slots.sort_unstable();
        assert!(slots.into_iter().eq(0..1000));
    }
}
