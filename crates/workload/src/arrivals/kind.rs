//! What a kind of arrivals is.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, Settings};

use crate::Chance;

/// A kind of arrivals.
pub struct Kind {
    /// Its name and what can be set.
    pub form: Definition,
    pub(super) build: fn(&Settings) -> Result<Box<dyn Arrivals>, String>,
}

/// The times of requests, one after the other, without end.
pub trait Arrivals: Send {
    /// The next one; never before the last.
    fn next(&mut self, chance: &mut Chance) -> Nanos;
}
