//! One request behind the other, from the end to the beginning again.

use iosonar_trace::words::Form;
use iosonar_trace::{Sector, Sectors};

use super::{Kind, Positions, Space};
use crate::Chance;

pub static KIND: Kind = Kind {
    form: Form {
        name: "sequential",
        about: "One request behind the other; at the end from the beginning again",
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
        let place = if self.next < self.space.places { self.next } else { 0 };
        self.next = place + self.space.taken(sectors);
        self.space.sector(place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn goes_round() {
        assert_eq!(first("sequential", 3, 7), [0, 1, 2, 0, 1, 2, 0]);
    }
}
