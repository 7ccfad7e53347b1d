//! A constant rate.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::{Arrivals, Kind};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "uniform",
        about: "A constant rate",
        details: "",
        params: &[ParamSpec {
            name: "rate",
            takes: ParamType::Rate,
            default: ParamDefault::Value("100"),
            help: "requests per second",
        }],
        example: "uniform rate=500",
    },
    build: |settings| Ok(Box::new(Uniform { rate: settings.number("rate"), done: 0 })),
};

struct Uniform {
    rate: f64,
    done: u64,
}

impl Arrivals for Uniform {
    /// Computes each time from the number of the request, so that rounding errors do not accumulate.
    fn next(&mut self, _: &mut Rng) -> Nanos {
        let at = Nanos::from_secs(self.done as f64 / self.rate);
        self.done += 1;
        at
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn rounding_errors_do_not_accumulate() {
        let times = first("uniform rate=300", 300_001, 1);
        assert_eq!((times[0], times[300], times[300_000]), (0.0, 1.0, 1000.0));
    }
}
