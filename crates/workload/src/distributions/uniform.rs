//! All numbers between two are equally likely.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use rand::RngExt;

use super::kind::{Distribution, Kind};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "uniform",
        about: "All numbers between two are equally likely",
        details: "The mean is (from + to)/2.",
        params: &[
            ParamSpec {
                name: "from",
                takes: ParamType::Time,
                default: ParamDefault::Value("0"),
                help: "smallest number",
            },
            ParamSpec { name: "to", takes: ParamType::Time, default: ParamDefault::Required, help: "largest number" },
        ],
        example: "uniform from=1ms to=9ms",
    },
    build,
};

fn build(settings: &Settings) -> Result<Box<dyn Distribution>, String> {
    let (from, to) = (settings.time("from").as_secs(), settings.time("to").as_secs());
    if from < 0.0 || to <= from {
        return Err("uniform: set `from` to zero or more, and `to` above it".into());
    }
    Ok(Box::new(Uniform { from, width: to - from }))
}

struct Uniform {
    from: f64,
    width: f64,
}

impl Distribution for Uniform {
    fn draw(&self, rng: &mut Rng) -> f64 {
        self.from + self.width * rng.random::<f64>()
    }

    fn mean(&self) -> f64 {
        self.from + self.width / 2.0
    }

    fn below(&self, x: f64) -> f64 {
        ((x - self.from) / self.width).clamp(0.0, 1.0)
    }
}
