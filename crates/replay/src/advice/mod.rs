//! The manual's advice on how not to be fooled by a device, checked instead of only written down. Each module takes what
//! is known at its time and returns sentences for the user.

mod after;
pub mod before;
pub mod remedies;

pub use after::{after, mean_in_flight, seen};
