//! Issues the calls of a trace below a root, in a stated order at a stated time.

mod action;
mod engine;
pub mod error;
mod execute;
mod options;
mod outcome;
mod planned;
pub mod root;
mod scratch;

pub use options::{Cache, Options, Threads, Timing};
