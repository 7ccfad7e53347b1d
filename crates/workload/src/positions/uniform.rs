//! Uniformly distributed positions.

use iosonar_trace::params::Definition;
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Kind, Positions, Space};
use crate::Chance;

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
    fn next(&mut self, sectors: Sectors, chance: &mut Chance) -> Sector {
        self.space.sector(chance.random_range(0..self.space.places_for(sectors)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;
    use super::*;

    #[test]
    fn small_requests_go_to_the_end_of_the_space_beside_large_ones() {
        let space = Space::new(Sectors(1000 * 8), Sectors(8), Sectors(900 * 8)).unwrap();
        let (mut uniform, mut chance) = (Uniform { space }, <Chance as rand::SeedableRng>::seed_from_u64(5));
        let mut last = |sectors| (0..10_000).map(|_| uniform.next(Sectors(sectors), &mut chance).0).max().unwrap();
        assert!((7900..8000).contains(&last(8)));
        assert!((700..=800).contains(&last(7200)));
    }

    #[test]
    fn chi_squared_of_uniform_places() {
        let (places, draws) = (100_u64, 100_000);
        let mut counts = vec![0_f64; places as usize];
        first("uniform", places, draws).iter().for_each(|p| counts[*p as usize] += 1.0);
        let expected = draws as f64 / places as f64;
        let chi: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
        // 99 degrees of freedom: mean 99, standard deviation 14.
        assert!((30.0..170.0).contains(&chi), "{chi}");
    }
}
