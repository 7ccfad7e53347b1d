//! Issues the calls of a trace below a root, in a stated order at a stated time.

mod action;
mod engine;
pub mod error;
mod execute;
mod feed;
mod instance;
mod options;
mod outcome;
mod pause;
mod planned;
mod recorder;
pub mod root;
mod scratch;
mod statistics;

pub use options::{Cache, Options, Threads, Timing};
