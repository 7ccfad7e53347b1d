//! Gamma-distributed times between arrivals.

use iosonar_trace::params::Definition;

use super::Kind;
use super::renewal::{RATE, Renewal};
use crate::distributions::{GAMMA_SHAPE, Gamma};

pub static KIND: Kind = Kind {
    form: Definition {
        name: "gamma",
        about: "Gamma-distributed inter-arrival times",
        details: "Independent, gamma-distributed times between arrivals with mean 1 / rate. The squared coefficient of variation is\n\
                  1 / shape: 1 is poisson, 0.1 comes in clusters, 10 is nearly even.",
        params: &[RATE, GAMMA_SHAPE],
        example: "gamma rate=500 shape=0.25",
    },
    build: |settings| Ok(Renewal::arrivals(Gamma::new(1.0 / settings.number("rate"), settings.number("shape"))?)),
};
