//! The engine: issues planned calls in order and at their time.

pub mod core;
pub mod descriptors;
mod history;
pub mod job;
pub mod lead;
pub mod pace;
pub mod schedule;
pub mod stalls;
#[cfg(test)]
mod tests;
