//! Numbers, lines, paths and other bytes as text.

pub mod escape;
pub mod human;
pub(crate) mod lines;
pub(crate) mod number;
pub(crate) mod path;
