//! Uniformly distributed positions.

use iosonar_trace::params::Definition;
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Draw, Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "uniform",
        about: "Uniformly distributed positions",
        details: "",
        params: &[],
        example: "uniform",
    },
    build: |_, space, _| Ok(Box::new(Uniform { space })),
};

struct Uniform {
    space: Space,
}

impl Positions for Uniform {
    fn next(&mut self, sectors: Sectors, rng: &mut Rng) -> Sector {
        self.space.sector(rng.random_range(0..self.space.slots_for(sectors)))
    }

    fn next_fitting(&mut self, draw: &mut Draw<'_>, rng: &mut Rng) -> (Sector, Sectors) {
        let slot = rng.random_range(0..self.space.slots_for_smallest());
        (self.space.sector(slot), draw(self.space.room(slot)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;
    use super::*;

    #[test]
    fn small_requests_reach_the_end_that_large_ones_do_not() {
        let space = Space::new(Sectors(1000 * 8), Sectors(8), Sectors(900 * 8)).unwrap();
        let (mut uniform, mut rng) = (Uniform { space }, <Rng as rand::SeedableRng>::seed_from_u64(5));
        let mut last = |sectors| (0..10_000).map(|_| uniform.next(Sectors(sectors), &mut rng).0).max().unwrap();
        assert!((7900..8000).contains(&last(8)));
        assert!((700..=800).contains(&last(7200)));
    }

    #[test]
    fn positions_are_uniformly_distributed_by_a_chi_squared_test() {
        let (slots, draws) = (100_u64, 100_000);
        let mut counts = vec![0_f64; slots as usize];
        first("uniform", slots, draws).iter().for_each(|p| counts[*p as usize] += 1.0);
        let expected = draws as f64 / slots as f64;
        let chi: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
        // 99 degrees of freedom: mean 99, standard deviation 14.
        assert!((30.0..170.0).contains(&chi), "{chi}");
    }
}
