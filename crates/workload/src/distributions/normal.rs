//! The normal distribution.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::kind::{Distribution, Kind};
use super::math;
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "normal",
        about: "Normal: around a mean, with the same chance above and below",
        details: "P(X <= x) = erfc((mean - x) / (deviation·√2)) / 2 (Box and Muller, 1958). A time below zero counts as zero.",
        params: &[
            ParamSpec {
                name: "mean",
                takes: ParamType::Time,
                default: ParamDefault::Required,
                help: "mean, in seconds or with a unit",
            },
            ParamSpec {
                name: "deviation",
                takes: ParamType::Time,
                default: ParamDefault::Required,
                help: "standard deviation",
            },
        ],
        example: "normal mean=5ms deviation=1ms",
    },
    build,
};

fn build(settings: &Settings) -> Result<Box<dyn Distribution>, String> {
    let (mean, deviation) = (settings.time("mean").as_secs(), super::kind::positive(settings, "deviation")?);
    Ok(Box::new(Normal { mean, deviation }))
}

struct Normal {
    mean: f64,
    deviation: f64,
}

impl Distribution for Normal {
    fn draw(&self, rng: &mut Rng) -> f64 {
        self.mean + self.deviation * math::normal(rng)
    }

    fn mean(&self) -> f64 {
        self.mean
    }

    fn below(&self, x: f64) -> f64 {
        math::normal_below((x - self.mean) / self.deviation)
    }
}
