//! Pareto-distributed times between arrivals.

use iosonar_trace::params::Definition;

use super::Kind;
use super::renewal::{RATE, Renewal};
use crate::distributions::{LARGEST, PARETO_SHAPE, pareto};

pub static KIND: Kind = Kind {
    form: Definition {
        name: "pareto",
        about: "Pareto-distributed inter-arrival times: long pauses between dense arrivals",
        details: "Independent times between arrivals with P(longer than x) = (smallest / x)^shape and mean 1 / rate. Up to shape 2 a\n\
                  few pauses take up a large share of the time, so that even a long load has its rate only roughly: the mean\n\
                  of n times approaches its limit as n^(1 / shape - 1). With `largest` it does so as n^(-1/2).",
        params: &[RATE, PARETO_SHAPE, LARGEST],
        example: "pareto rate=500 shape=1.5 largest=10s",
    },
    build: |settings| Ok(Renewal::arrivals(pareto(settings, 1.0 / settings.number("rate"))?)),
};
