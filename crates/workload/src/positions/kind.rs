//! What a kind of positions is.

use iosonar_trace::params::{Definition, Settings};
use iosonar_trace::{Sector, Sectors};

use super::space::Space;
use crate::Chance;

/// A kind of positions.
pub struct Kind {
    /// Its name and what can be set.
    pub form: Definition,
    pub(super) build: Build,
}

/// Makes them for a space; the number is the load's seed.
pub(super) type Build = fn(&Settings, Space, u64) -> Result<Box<dyn Positions>, String>;

/// The positions of requests, one after the other, without end.
pub trait Positions: Send {
    /// Where the next request of that length goes.
    fn next(&mut self, sectors: Sectors, chance: &mut Chance) -> Sector;

    /// What is otherwise than it was asked for, as the space has no room for that.
    fn notice(&self) -> Option<String> {
        None
    }
}
