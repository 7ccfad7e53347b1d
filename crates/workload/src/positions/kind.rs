//! Kinds of positions.

use iosonar_trace::params::{Definition, Settings, did_you_mean, split};
use iosonar_trace::{Sector, Sectors};

use super::space::{Draw, Space};
use crate::Rng;

/// A kind of positions.
pub struct Kind {
    /// Name, description and settings.
    pub form: Definition,
    pub(super) build: Build,
}

/// Creates the positions for a space; the number is the seed of the load.
pub(super) type Build = fn(&Settings, Space, u64) -> Result<Box<dyn Positions>, String>;

/// Parses the name and settings of one of these kinds.
pub(super) fn parse_one_of(kinds: &[&'static Kind], text: &str) -> Result<Settings, String> {
    let [phrase] = &split(text)?[..] else { return Err("name one kind of positions".into()) };
    let names = kinds.iter().map(|kind| kind.form.name);
    let kind = kinds.iter().find(|kind| kind.form.name == phrase.name);
    let kind =
        kind.ok_or_else(|| format!("unknown positions {}; {}", phrase.name, did_you_mean(&phrase.name, names)))?;
    Settings::new(&kind.form, &phrase.settings)
}

/// Builds the positions of one of these kinds.
pub(super) fn build_one_of(
    kinds: &[&'static Kind],
    settings: &Settings,
    space: Space,
    seed: u64,
) -> Result<Box<dyn Positions>, String> {
    let kind = kinds.iter().find(|kind| kind.form.name == settings.name());
    (kind.ok_or_else(|| format!("{} are no positions", settings.name()))?.build)(settings, space, seed)
}

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
