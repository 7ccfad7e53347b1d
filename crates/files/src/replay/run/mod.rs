//! A replay of calls from beginning to end.

mod before;
mod checks;
mod execution;
mod footer;
mod opened;
mod prepared;
mod proof;
mod recover;

pub use execution::Finished;
pub use prepared::Prepared;
pub use recover::{is_journal, recover};
