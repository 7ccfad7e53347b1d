//! Distributions.

use iosonar_trace::params::{ParamDefault, ParamSpec, ParamType, Settings};

use crate::Rng;
use crate::kinds;

/// A kind of distributions.
pub type Kind = kinds::Kind<fn(&Settings) -> Result<Box<dyn Distribution>, String>>;

/// A distribution of numbers. Where the numbers are times, they are in seconds.
pub trait Distribution: Send + Sync {
    /// One number.
    fn draw(&self, rng: &mut Rng) -> f64;

    /// The mean of all numbers, in closed form.
    fn mean(&self) -> f64;

    /// The distribution function: the share of numbers that are at most `x`.
    fn below(&self, x: f64) -> f64;
}

/// The parameter of the distributions with a mean.
pub(super) const MEAN: ParamSpec = ParamSpec {
    name: "mean",
    takes: ParamType::Time,
    default: ParamDefault::Required,
    help: "mean, in seconds or with a unit",
};

/// The value of a setting that must be above zero.
pub(super) fn positive(settings: &Settings, name: &str) -> Result<f64, String> {
    let value = settings.time(name).as_secs();
    if value <= 0.0 { Err(format!("{}: set `{name}` above zero", settings.name())) } else { Ok(value) }
}
