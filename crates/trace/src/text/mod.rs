//! Numbers, lines, paths and other bytes as text.

pub(crate) mod dates;
pub mod escape;
pub mod human;
pub mod lines;
pub mod number;
pub(crate) mod path;
