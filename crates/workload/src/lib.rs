//! Artificial loads: when requests come ([`arrivals`]), where they go ([`positions`]), how large they are ([`Sizes`]).
//!
//! A [`Recipe`] puts these together; what it makes is a reader like that of any file, in constant memory. The same
//! recipe makes the same requests on every machine.

pub mod arrivals;
mod generated;
pub mod positions;
mod sizes;

pub use generated::{Generated, Recipe};
pub use sizes::Sizes;

/// The source of chance: its numbers depend on nothing but the seed.
pub type Chance = rand_pcg::Pcg64;
