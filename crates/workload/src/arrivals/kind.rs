//! Arrivals.

use iosonar_trace::Nanos;
use iosonar_trace::params::Settings;

use crate::Rng;
use crate::kinds;

/// A kind of arrivals.
pub type Kind = kinds::Kind<fn(&Settings) -> Result<Box<dyn Arrivals>, String>>;

/// An endless sequence of arrival times.
pub trait Arrivals: Send {
    /// The next time; never earlier than the last.
    fn next(&mut self, rng: &mut Rng) -> Nanos;
}
