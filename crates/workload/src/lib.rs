//! Artificial loads: when requests come ([`arrivals`]), where they go ([`positions`]), how large they
//! are ([`Sizes`]), which operations they have ([`Mix`]), and what these draw from ([`distributions`]).
//!
//! A [`program`] combines them for several streams, which may wait for completions; the [`library`] has ready ones.
//!
//! A [`Recipe`] combines them for one stream. Its load is a reader like that of a file, and needs constant memory. The same recipe generates
//! the same requests on every machine.

pub mod arrivals;
pub mod cache;
pub mod distributions;
pub mod filament;
pub mod fit;
pub mod histogram;
pub mod kinds;
mod length;
pub mod library;
mod mix;
pub mod origin;
pub mod positions;
pub mod program;
pub mod region;
pub mod script;
pub mod sizes;

pub use mix::Mix;
pub use program::Recipe;
pub use sizes::Sizes;

/// The random number generator; its numbers depend only on the seed.
pub type Rng = rand_pcg::Pcg64;
