//! Lognormally distributed times between arrivals.

use iosonar_trace::params::Definition;

use super::Kind;
use super::renewal::{RATE, Renewal};
use crate::distributions::{Lognormal, SIGMA};

pub static KIND: Kind = Kind {
    form: Definition {
        name: "lognormal",
        about: "Lognormally distributed inter-arrival times",
        details: "Independent times between arrivals: the logarithm of each is normally distributed, and their mean is 1 / rate. The\n\
                  larger sigma, the burstier; the squared coefficient of variation is exp(sigma^2) - 1.",
        params: &[RATE, SIGMA],
        example: "lognormal rate=500 sigma=1.5",
    },
    build: |settings| Ok(Renewal::arrivals(Lognormal::new(1.0 / settings.number("rate"), settings.number("sigma"))?)),
};
