//! The schedule: which requests are issued, and when.

pub mod iterations;
pub mod time_map;
mod window;

pub use window::Window;
