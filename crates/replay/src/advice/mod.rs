//! Warnings and remedies: the manual's advice on measuring devices, applied to a run. Each function takes plain facts and
//! returns sentences for the user.

mod after;
pub mod before;
pub mod remedies;

pub use after::{after, device_counters, mean_in_flight, other_io};
