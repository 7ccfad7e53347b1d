//! The lognormal distribution: its logarithm is normally distributed.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::kind::{Distribution, Kind, MEAN, positive};
use super::math;
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "lognormal",
        about: "Lognormal: the logarithm is normally distributed",
        details: "X = exp(mu + sigma·Z) with Z normal, mu = ln mean - sigma²/2 (Johnson, Kotz and Balakrishnan, \"Continuous\n\
                  Univariate Distributions\", vol. 1, ch. 14). CV² is exp(sigma²) - 1.",
        params: &[MEAN, SIGMA],
        example: "lognormal mean=5ms sigma=1.5",
    },
    build: |settings| Ok(Box::new(Lognormal::new(positive(settings, "mean")?, settings.number("sigma"))?)),
};

pub(crate) const SIGMA: ParamSpec = ParamSpec {
    name: "sigma",
    takes: ParamType::Positive,
    default: ParamDefault::Value("1"),
    help: "standard deviation of the logarithm, up to 5",
};

pub(crate) struct Lognormal {
    mean: f64,
    mu: f64,
    sigma: f64,
}

impl Lognormal {
    /// With a mean above zero.
    ///
    /// # Errors
    /// If sigma is larger than 5: the mean of any load would be far from the mean of the distribution.
    pub fn new(mean: f64, sigma: f64) -> Result<Self, String> {
        if sigma > 5.0 {
            return Err("lognormal: `sigma` is too large; set it to 5 or less".into());
        }
        Ok(Self { mean, mu: libm::log(mean) - sigma * sigma / 2.0, sigma })
    }
}

impl Distribution for Lognormal {
    fn draw(&self, rng: &mut Rng) -> f64 {
        libm::exp(self.mu + self.sigma * math::normal(rng))
    }

    fn mean(&self) -> f64 {
        self.mean
    }

    fn below(&self, x: f64) -> f64 {
        if x <= 0.0 { 0.0 } else { math::normal_below((libm::log(x) - self.mu) / self.sigma) }
    }
}
