//! The Pareto distribution, with or without a largest number: heavy tails.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::kind::{Distribution, Kind, MEAN, positive};
use super::math;
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "pareto",
        about: "Pareto: heavy tails, a few numbers are very large",
        details: "P(X > x) = (smallest/x)^shape, drawn by inversion (Johnson, Kotz and Balakrishnan, ch. 20), with `largest` bounded\n\
                  (Crovella, Harchol-Balter and Murta, 1998). `smallest` follows from the mean: mean·(shape-1)/shape without\n\
                  `largest`. Up to shape 2 the variance is infinite without `largest`.",
        params: &[MEAN, SHAPE, LARGEST],
        example: "pareto mean=5ms shape=1.5 largest=10s",
    },
    build: |settings| Ok(Box::new(from_settings(settings, positive(settings, "mean")?)?)),
};

pub(crate) const SHAPE: ParamSpec = ParamSpec {
    name: "shape",
    takes: ParamType::Positive,
    default: ParamDefault::Value("1.5"),
    help: "exponent of the tail, from 0.1 to 100, above 1 without `largest`",
};

pub(crate) const LARGEST: ParamSpec = ParamSpec {
    name: "largest",
    takes: ParamType::Time,
    default: ParamDefault::Described("unbounded"),
    help: "largest time",
};

/// With this mean, and the settings [`SHAPE`] and [`LARGEST`].
pub(crate) fn from_settings(settings: &Settings, mean: f64) -> Result<Pareto, String> {
    let largest = settings.optional_time("largest").map_or(f64::INFINITY, |time| time.as_secs());
    Pareto::with_mean(mean, settings.number("shape"), largest)
}

#[derive(Clone, Copy)]
pub(crate) struct Pareto {
    pub shape: f64,
    pub smallest: f64,
    /// Infinite without a bound.
    pub largest: f64,
}

impl Pareto {
    /// # Errors
    /// If the shape is out of range, or the largest number is not above the mean.
    pub fn with_mean(mean: f64, shape: f64, largest: f64) -> Result<Self, String> {
        if !(0.1..=100.0).contains(&shape) {
            return Err("pareto: set `shape` from 0.1 to 100".into());
        }
        if largest.is_infinite() {
            if shape <= 1.0 {
                return Err("pareto: the mean is infinite; set `shape` above 1, or `largest`".into());
            }
            return Ok(Self { shape, smallest: mean * (shape - 1.0) / shape, largest });
        }
        // With a bound closer to the mean, rounding would make all numbers equal.
        if largest < mean * 1.001 {
            return Err("pareto: `largest` must be above the mean".into());
        }
        let smallest = math::bisect(0.0, mean, |smallest| Self { shape, smallest, largest }.mean() - mean);
        // Below this, a bound with so small a shape would need numbers that no clock measures.
        if smallest < largest * 1e-12 {
            return Err("pareto: `largest` is too far from the mean for this shape; make it smaller".into());
        }
        Ok(Self { shape, smallest, largest })
    }

    /// The share of an unbounded distribution that is within the bound.
    fn within(self) -> f64 {
        1.0 - self.tail()
    }

    /// The share of an unbounded distribution that is beyond the bound.
    fn tail(self) -> f64 {
        libm::pow(self.smallest / self.largest, self.shape)
    }

    /// A number of the distribution in which each is as frequent as it is large: the length of the phase at a random
    /// point of time, if this is the distribution of phases.
    pub fn weighted_by_length(self) -> Self {
        Self { shape: self.shape - 1.0, ..self }
    }
}

impl Distribution for Pareto {
    fn draw(&self, rng: &mut Rng) -> f64 {
        // Between the tail and 1, so that the number is within the bound.
        let above = self.tail() + self.within() * math::unit(rng);
        (self.smallest * libm::pow(above, -1.0 / self.shape)).min(self.largest)
    }

    fn mean(&self) -> f64 {
        let Self { shape, smallest, largest } = *self;
        if largest.is_infinite() {
            return smallest * shape / (shape - 1.0);
        }
        if smallest == 0.0 {
            return 0.0;
        }
        // ∫ x·shape·smallest^shape·x^(−shape−1) dx = shape·smallest·(1 − r^(1−shape)) / (shape − 1), r = largest/smallest;
        // at shape 1 it is smallest·ln r. Near 1 the difference would cancel, hence expm1.
        let log = libm::log(largest / smallest);
        let power = (1.0 - shape) * log;
        let factor = if power == 0.0 { log } else { libm::expm1(power) / (1.0 - shape) };
        shape * smallest * factor / self.within()
    }

    fn below(&self, x: f64) -> f64 {
        if x < self.smallest {
            return 0.0;
        }
        let above = libm::pow(self.smallest / x.min(self.largest), self.shape);
        (1.0 - above) / self.within()
    }
}
