//! The Weibull distribution.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::kind::{Distribution, Kind, MEAN, positive};
use super::math;
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "weibull",
        about: "Weibull: more or less variable than exponential",
        details: "P(X > x) = exp(-(x/scale)^shape), scale = mean / Gamma(1 + 1/shape), drawn by inversion (Johnson, Kotz and\n\
                  Balakrishnan, ch. 21).",
        params: &[MEAN, SHAPE],
        example: "weibull mean=5ms shape=0.5",
    },
    build: |settings| Ok(Box::new(Weibull::new(positive(settings, "mean")?, settings.number("shape"))?)),
};

pub(crate) const SHAPE: ParamSpec = ParamSpec {
    name: "shape",
    takes: ParamType::Positive,
    default: ParamDefault::Value("0.5"),
    help: "from 0.1 to 100; 1 is exponential, smaller is burstier",
};

pub(crate) struct Weibull {
    mean: f64,
    scale: f64,
    shape: f64,
}

impl Weibull {
    /// # Errors
    /// If the shape is out of range.
    pub fn new(mean: f64, shape: f64) -> Result<Self, String> {
        if !(0.1..=100.0).contains(&shape) {
            return Err("weibull: set `shape` from 0.1 to 100".into());
        }
        Ok(Self { mean, scale: mean / libm::tgamma(1.0 + 1.0 / shape), shape })
    }
}

impl Distribution for Weibull {
    fn draw(&self, rng: &mut Rng) -> f64 {
        self.scale * libm::pow(math::exponential(rng), 1.0 / self.shape)
    }

    fn mean(&self) -> f64 {
        self.mean
    }

    fn below(&self, x: f64) -> f64 {
        -libm::expm1(-libm::pow(x.max(0.0) / self.scale, self.shape))
    }
}
