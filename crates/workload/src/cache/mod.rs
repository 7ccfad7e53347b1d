//! Caches: how they fill, how often they hit, and how large they must be.
//!
//! [`Filling`] is a cache as large as its working set, by formula and by simulation; [`ReuseDistances`] and [`WorkingSets`]
//! measure a recorded load.

mod filling;
mod reuse;
mod working_sets;

pub use filling::{Filling, Simulation};
pub use reuse::{PAGE, Reuse, ReuseDistances, pages};
pub use working_sets::{Filled, TooManyBlocks, WorkingSets};
