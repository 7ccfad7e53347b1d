//! A replay of calls from beginning to end.

mod checks;
mod execution;
mod footer;
mod initial_descriptors;
mod preflight;
mod prepared;
mod proof;
mod recover;

pub use execution::Finished;
pub use prepared::Prepared;
pub use recover::{is_journal, recover};
