//! Where requests go: one file for each kind, and one line in [`SIMPLE`].

mod files;
mod hotspots;
mod kind;
mod measured;
mod normal;
mod random_map;
mod random_walk;
mod runs;
mod scatter;
mod self_similar;
mod sequential;
mod shuffled;
mod simple;
mod space;
mod streams;
mod strided;
mod uniform;
mod zipf;

pub use kind::{Kind, Positions};
pub(crate) use measured::{MAX_BACK, TouchedSlots, shift};
pub(crate) use space::Draw;
pub use space::Space;

use iosonar_trace::params::Settings;

use crate::kinds;
use simple::SIMPLE;

/// Every kind of positions: the simple ones, and files that each have one of them.
pub static KINDS: &[&Kind] = &{
    let mut kinds = [&files::KIND; SIMPLE.len() + 1];
    kinds.split_at_mut(SIMPLE.len()).0.copy_from_slice(SIMPLE);
    kinds
};

/// Parses, for example, `zipf exponent=1.1`.
///
/// # Errors
/// If the kind is unknown, or a setting is invalid.
pub fn parse(text: &str) -> Result<Settings, String> {
    kinds::parse("positions", KINDS, text)
}

pub(crate) fn build(settings: &Settings, space: Space, seed: u64) -> Result<Box<dyn Positions>, String> {
    kinds::build_of("positions", KINDS, settings)?(settings, space, seed)
}

/// What positions of this kind need in memory beside a constant part.
pub(crate) fn bytes(settings: &Settings, space: Space) -> u64 {
    match settings.name() {
        name if name == random_map::KIND.form.name => random_map::bytes(space),
        name if name == files::KIND.form.name => files::bytes(settings, space),
        _ => 0,
    }
}

/// The slots of the first `count` requests of 4 KiB on a device with `slots` slots of 4 KiB.
#[cfg(test)]
pub(crate) fn first(text: &str, slots: u64, count: usize) -> Vec<u64> {
    let sectors = iosonar_trace::Sectors;
    let space = Space::new(sectors(slots * 8), sectors(8), sectors(8)).unwrap();
    let mut positions = build(&parse(text).unwrap(), space, 1).unwrap();
    let mut rng = <crate::Rng as rand::SeedableRng>::seed_from_u64(5);
    (0..count).map(|_| positions.next(sectors(8), &mut rng).0 / 8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_built_from_its_example() {
        for kind in KINDS {
            assert!(first(kind.form.example, 1000, 1000).iter().all(|slot| *slot < 1000), "{}", kind.form.name);
            first(kind.form.name, 1, 10);
        }
    }

    #[test]
    fn an_unknown_kind_is_refused_with_a_suggestion() {
        assert!(parse("zip").unwrap_err().contains("did you mean zipf?"));
    }
}
