//! Numbers, lines, paths and other bytes as text.

pub mod escape;
pub mod human;
pub mod lines;
pub mod number;
pub(crate) mod path;
