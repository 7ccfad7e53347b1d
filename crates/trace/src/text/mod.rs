//! Numbers, lines and paths as text.

pub mod human;
pub(crate) mod lines;
pub(crate) mod number;
pub(crate) mod path;
