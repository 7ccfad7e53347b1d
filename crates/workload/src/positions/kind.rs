//! Positions.

use iosonar_trace::params::Settings;
use iosonar_trace::{Sector, Sectors};

use super::space::{Draw, Space};
use crate::Rng;
use crate::kinds;

/// A kind of positions; they are made for a space, with the seed of the load.
pub type Kind = kinds::Kind<fn(&Settings, Space, u64) -> Result<Box<dyn Positions>, String>>;

/// An endless sequence of positions.
pub trait Positions: Send {
    /// The position of the next request, which has this length.
    fn next(&mut self, sectors: Sectors, rng: &mut Rng) -> Sector;

    /// The position and the length of the next request, which may become shorter than asked for.
    fn next_request(&mut self, sectors: Sectors, rng: &mut Rng) -> (Sector, Sectors) {
        (self.next(sectors, rng), sectors)
    }

    /// The position and the length of the next request, whose size is drawn after the position, among those that fit before the
    /// end of the space.
    fn next_fitting(&mut self, draw: &mut Draw<'_>, rng: &mut Rng) -> (Sector, Sectors) {
        let sectors = draw(Sectors(u64::MAX)).unwrap_or_default();
        self.next_request(sectors, rng)
    }

    /// A warning if a setting was reduced because the space is too small for it.
    fn warning(&self) -> Option<String> {
        None
    }
}
