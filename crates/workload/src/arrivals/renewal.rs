//! Renewal processes: independent times between arrivals, all of one distribution.

use iosonar_trace::Nanos;
use iosonar_trace::params::{ParamDefault, ParamSpec, ParamType};

use super::Arrivals;
use crate::Rng;
use crate::distributions::Distribution;

/// The parameter of every kind with a mean rate.
pub(super) const RATE: ParamSpec = ParamSpec {
    name: "rate",
    takes: ParamType::Rate,
    default: ParamDefault::Value("100"),
    help: "mean requests per second",
};

/// Arrivals with these times in between, in seconds.
pub(super) struct Renewal<D> {
    between: D,
    now: f64,
}

impl<D: Distribution + 'static> Renewal<D> {
    pub fn arrivals(between: D) -> Box<dyn Arrivals> {
        Box::new(Self { between, now: 0.0 })
    }
}

impl<D: Distribution> Arrivals for Renewal<D> {
    fn next(&mut self, rng: &mut Rng) -> Nanos {
        self.now += self.between.draw(rng);
        Nanos::from_secs(self.now)
    }
}
