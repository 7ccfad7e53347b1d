//! The schedule: which requests are issued, and when.

pub mod clock;
pub mod demand;
pub mod ideal;
pub mod iterations;
pub mod perturb;
pub mod time_map;
mod window;

pub use window::Window;
