//! Always the same number.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::kind::{Distribution, Kind, positive};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "constant",
        about: "Always the same number",
        details: "",
        params: &[ParamSpec {
            name: "value",
            takes: ParamType::Time,
            default: ParamDefault::Required,
            help: "the number",
        }],
        example: "constant value=5ms",
    },
    build: |settings| Ok(Box::new(Constant { value: positive(settings, "value")? })),
};

struct Constant {
    value: f64,
}

impl Distribution for Constant {
    fn draw(&self, _: &mut Rng) -> f64 {
        self.value
    }

    fn mean(&self) -> f64 {
        self.value
    }

    fn below(&self, x: f64) -> f64 {
        if x < self.value { 0.0 } else { 1.0 }
    }
}
