//! Issues the calls of a trace below a root, in a stated order at a stated time.

mod action;
mod controls;
mod devices;
mod engine;
pub mod error;
mod execute;
mod instance;
mod journal;
mod limits;
mod live;
mod locks;
mod options;
mod outcome;
mod pause;
mod prepared_call;
mod preparer;
mod prescan;
mod recorder;
pub mod root;
mod run;
mod scratch;
mod share;
mod source;
mod statistics;
#[cfg(test)]
mod tests;
mod threads;
mod timed;

pub use live::of_calls;
pub use options::{Cache, Options, Threads, Timing};
pub use prescan::Prescan;
pub use run::{Finished, Prepared, is_journal, recover};
pub use statistics::{Instance as InstanceStatistics, Mismatch, Statistics};
