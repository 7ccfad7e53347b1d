//! Sequential positions, which wrap around at the end.

use iosonar_trace::params::Definition;
use iosonar_trace::{Sector, Sectors};

use super::{Draw, Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "sequential",
        about: "Each request starts where the one before ended, and wraps around",
        details: "",
        params: &[],
        example: "sequential",
    },
    build: |_, space, _| Ok(Box::new(Sequential { space, next: 0 })),
};

struct Sequential {
    space: Space,
    next: u64,
}

impl Positions for Sequential {
    fn next(&mut self, sectors: Sectors, _: &mut Rng) -> Sector {
        let slot = if self.next < self.space.slots_for(sectors) { self.next } else { 0 };
        self.next = slot + self.space.slots_of(sectors);
        self.space.sector(slot)
    }

    fn next_fitting(&mut self, draw: &mut Draw<'_>, _: &mut Rng) -> (Sector, Sectors) {
        let (slot, sectors) = self.space.following(self.next, draw).unwrap_or_else(|| self.space.first(draw));
        self.next = slot + self.space.slots_of(sectors);
        (self.space.sector(slot), sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;
    use super::*;

    #[test]
    fn positions_wrap_around() {
        assert_eq!(first("sequential", 3, 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_request_wraps_around_if_it_does_not_fit_before_the_end() {
        let space = Space::new(Sectors(5 * 8), Sectors(8), Sectors(3 * 8)).unwrap();
        let (mut sequential, mut rng) = (Sequential { space, next: 0 }, <Rng as rand::SeedableRng>::seed_from_u64(5));
        let slots = [1, 3, 1, 1, 1, 3, 3].map(|length| sequential.next(Sectors(length * 8), &mut rng).0 / 8);
        assert_eq!(slots, [0, 1, 4, 0, 1, 2, 0]);
    }
}
