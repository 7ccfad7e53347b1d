//! Caches: how they fill, and how often they hit.
//!
//! [`Filling`] is a cache as large as its working set, by formula and by simulation; [`ReuseDistances`] measures a recorded
//! load.

mod filling;
mod reuse;

pub use filling::{Filling, Simulation};
pub use reuse::{PAGE, Reuse, ReuseDistances, pages};
