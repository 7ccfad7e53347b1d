//! Where requests go: one file for each kind, and one line in [`KINDS`].

mod hotspots;
mod sequential;
mod streams;
mod uniform;
mod zipf;

use iosonar_trace::words::{Form, Settings, did_you_mean, split};
use iosonar_trace::{Sector, Sectors};

use crate::Chance;

/// Every kind of positions.
pub static KINDS: &[&Kind] = &[&uniform::KIND, &sequential::KIND, &zipf::KIND, &hotspots::KIND, &streams::KIND];

/// A kind of positions.
pub struct Kind {
    /// Its name and what can be set.
    pub form: Form,
    build: Build,
}

/// Makes them for a space; the number is the load's seed.
type Build = fn(&Settings, Space, u64) -> Result<Box<dyn Positions>, String>;

/// The positions of requests, one after the other, without end.
pub trait Positions: Send {
    /// Where the next request of that length goes.
    fn next(&mut self, sectors: Sectors, chance: &mut Chance) -> Sector;

    /// What is otherwise than it was asked for, as the space has no room for that.
    fn notice(&self) -> Option<String> {
        None
    }
}

/// The places at which a request may start: multiples of the alignment.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    span: u64,
    align: u64,
    /// Those from which even the largest request fits.
    places: u64,
    /// How many places the largest request takes.
    largest: u64,
}

impl Space {
    /// Of a device of that span.
    ///
    /// # Errors
    /// If a request is larger than the device.
    pub fn new(span: Sectors, align: Sectors, largest: Sectors) -> Result<Self, String> {
        let Some(room) = span.0.checked_sub(largest.0) else {
            return Err(format!(
                "requests of {} sectors are larger than the span of {} sectors they are to go to",
                largest.0, span.0
            ));
        };
        let taken = largest.0.div_ceil(align.0).max(1);
        Ok(Self { span: span.0, align: align.0, places: room / align.0 + 1, largest: taken })
    }

    /// From how many places a request fits that is no larger than the largest one.
    fn places_for(self, sectors: Sectors) -> u64 {
        self.span.saturating_sub(sectors.0) / self.align + 1
    }

    fn sector(self, place: u64) -> Sector {
        Sector(place * self.align)
    }

    /// How many places a request takes.
    fn taken(self, sectors: Sectors) -> u64 {
        sectors.0.div_ceil(self.align).max(1)
    }
}

/// Reads `zipf exponent=1.1`.
///
/// # Errors
/// If the kind is unknown or wrongly set.
pub fn parse(text: &str) -> Result<Settings, String> {
    let [phrase] = &split(text)?[..] else { return Err("one kind of positions is expected".into()) };
    let names = KINDS.iter().map(|kind| kind.form.name);
    let kind = KINDS.iter().find(|kind| kind.form.name == phrase.name);
    let kind =
        kind.ok_or_else(|| format!("no positions are called {}; {}", phrase.name, did_you_mean(&phrase.name, names)))?;
    Settings::new(&kind.form, &phrase.settings)
}

pub(crate) fn build(settings: &Settings, space: Space, seed: u64) -> Result<Box<dyn Positions>, String> {
    let kind = KINDS.iter().find(|kind| kind.form.name == settings.name());
    (kind.ok_or_else(|| format!("{} are no positions", settings.name()))?.build)(settings, space, seed)
}

/// The places, counted in alignments, of that many requests of 4 KiB on a device with room for `places`.
#[cfg(test)]
pub(crate) fn first(text: &str, places: u64, count: usize) -> Vec<u64> {
    let space = Space::new(Sectors(places * 8), Sectors(8), Sectors(8)).unwrap();
    let mut positions = build(&parse(text).unwrap(), space, 1).unwrap();
    let mut chance = <Chance as rand::SeedableRng>::seed_from_u64(5);
    (0..count).map(|_| positions.next(Sectors(8), &mut chance).0 / 8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_built_from_its_example() {
        for kind in KINDS {
            assert!(first(kind.form.example, 1000, 1000).iter().all(|place| *place < 1000), "{}", kind.form.name);
            first(kind.form.name, 1, 10);
        }
    }

    #[test]
    fn an_unknown_kind_is_refused_with_a_suggestion() {
        assert!(parse("zip").unwrap_err().contains("did you mean zipf?"));
    }
}
