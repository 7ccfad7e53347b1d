//! Kinds of arrivals.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, Settings};

use crate::Rng;

/// A kind of arrivals.
pub struct Kind {
    /// Name, description and settings.
    pub form: Definition,
    pub(super) build: fn(&Settings) -> Result<Box<dyn Arrivals>, String>,
}

/// An endless sequence of arrival times.
pub trait Arrivals: Send {
    /// The next time; never earlier than the last.
    fn next(&mut self, rng: &mut Rng) -> Nanos;
}
