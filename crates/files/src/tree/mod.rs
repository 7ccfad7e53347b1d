//! The tree of files that a trace needs: its snapshot, what is missing, and how to make it.

mod entry;

pub use entry::{Entry, EntryId, Kind, Tree};
