//! Weibull-distributed times between arrivals.

use iosonar_trace::params::Definition;

use super::Kind;
use super::renewal::{RATE, Renewal};
use crate::distributions::{WEIBULL_SHAPE, Weibull};

pub static KIND: Kind = Kind {
    form: Definition {
        name: "weibull",
        about: "Weibull-distributed inter-arrival times",
        details: "Independent times between arrivals with P(longer than x) = exp(-(x / scale)^shape) and mean 1 / rate.",
        params: &[RATE, WEIBULL_SHAPE],
        example: "weibull rate=500 shape=0.5",
    },
    build: |settings| Ok(Renewal::arrivals(Weibull::new(1.0 / settings.number("rate"), settings.number("shape"))?)),
};
