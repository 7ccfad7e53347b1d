//! The gamma distribution.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::kind::{Distribution, Kind, MEAN, positive};
use super::math;
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "gamma",
        about: "Gamma: more or less variable than exponential",
        details: "Density x^(shape-1)·exp(-x/scale) / (Gamma(shape)·scale^shape), scale = mean/shape (Marsaglia and Tsang, 2000).\n\
                  CV² is 1/shape.",
        params: &[MEAN, SHAPE],
        example: "gamma mean=5ms shape=0.25",
    },
    build: |settings| Ok(Box::new(Gamma::new(positive(settings, "mean")?, settings.number("shape"))?)),
};

pub(crate) const SHAPE: ParamSpec = ParamSpec {
    name: "shape",
    takes: ParamType::Positive,
    default: ParamDefault::Value("0.5"),
    help: "from 0.01 to 10000; 1 is exponential, smaller is burstier",
};

pub(crate) struct Gamma {
    mean: f64,
    shape: f64,
}

impl Gamma {
    /// # Errors
    /// If the shape is out of range.
    pub fn new(mean: f64, shape: f64) -> Result<Self, String> {
        if !(0.01..=10_000.0).contains(&shape) {
            return Err("gamma: set `shape` from 0.01 to 10000".into());
        }
        Ok(Self { mean, shape })
    }
}

impl Distribution for Gamma {
    fn draw(&self, rng: &mut Rng) -> f64 {
        // The method needs a shape of 1 or more; X(shape) = X(shape + 1) · U^(1/shape).
        let (shape, factor) = match self.shape {
            shape if shape < 1.0 => (shape + 1.0, libm::pow(math::unit(rng), 1.0 / shape)),
            shape => (shape, 1.0),
        };
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let z = math::normal(rng);
            let v = 1.0 + c * z;
            if v <= 0.0 {
                continue;
            }
            let v = v * v * v;
            if libm::log(math::unit(rng)) < 0.5 * z * z + d - d * v + d * libm::log(v) {
                return self.mean / self.shape * d * v * factor;
            }
        }
    }

    fn mean(&self) -> f64 {
        self.mean
    }

    fn below(&self, x: f64) -> f64 {
        math::gamma_below(self.shape, x * self.shape / self.mean)
    }
}
