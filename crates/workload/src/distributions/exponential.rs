//! The exponential distribution: the time until the next of independent events.

use iosonar_trace::params::Definition;

use super::kind::{Distribution, Kind, MEAN, positive};
use super::math;
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "exponential",
        about: "Exponential: the time until the next of independent events",
        details: "P(X <= x) = 1 - exp(-x/mean), drawn by inversion (Devroye, \"Non-Uniform Random Variate Generation\", 1986, II.2).",
        params: &[MEAN],
        example: "exponential mean=5ms",
    },
    build: |settings| Ok(Box::new(Exponential { mean: positive(settings, "mean")? })),
};

struct Exponential {
    mean: f64,
}

impl Distribution for Exponential {
    fn draw(&self, rng: &mut Rng) -> f64 {
        self.mean * math::exponential(rng)
    }

    fn mean(&self) -> f64 {
        self.mean
    }

    fn below(&self, x: f64) -> f64 {
        -libm::expm1(-x.max(0.0) / self.mean)
    }
}
