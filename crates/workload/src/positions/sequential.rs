//! One request behind the other, from the end to the beginning again.

use iosonar_trace::params::Definition;
use iosonar_trace::{Sector, Sectors};

use super::{Kind, Positions, Space};
use crate::Chance;

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
    fn next(&mut self, sectors: Sectors, _: &mut Chance) -> Sector {
        let place = if self.next < self.space.places_for(sectors) { self.next } else { 0 };
        self.next = place + self.space.taken(sectors);
        self.space.sector(place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;
    use super::*;

    #[test]
    fn goes_round() {
        assert_eq!(first("sequential", 3, 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn each_goes_as_far_as_it_fits() {
        let space = Space::new(Sectors(5 * 8), Sectors(8), Sectors(3 * 8)).unwrap();
        let (mut sequential, mut chance) =
            (Sequential { space, next: 0 }, <Chance as rand::SeedableRng>::seed_from_u64(5));
        let places = [1, 3, 1, 1, 1, 3, 3].map(|length| sequential.next(Sectors(length * 8), &mut chance).0 / 8);
        assert_eq!(places, [0, 1, 4, 0, 1, 2, 0]);
    }
}
