//! Every place as likely as any other.

use iosonar_trace::words::Form;
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Kind, Positions, Space};
use crate::Chance;

pub static KIND: Kind = Kind {
    form: Form {
        name: "uniform",
        about: "Every place as likely as any other",
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
    fn next(&mut self, _: Sectors, chance: &mut Chance) -> Sector {
        self.space.sector(chance.random_range(0..self.space.places))
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

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
