//! The tree of files that a trace needs: its snapshot, what is missing, and how to make it.
//!
//! ```text
//!  directories ─▶ capture ─▶ Tree ⇄ NAME.tree.parquet
//!                              │
//!  trace ─▶ prescan ─▶ Needs ───┴▶ plan ─▶ check
//!                                     └──▶ prepare
//! ```

mod capture;
mod check;
mod confined;
mod links;
mod mounts;
mod outcome;
mod outside_snapshot;
mod place;
mod plan;
mod prepare;
mod prescan;
mod table;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use crate::snapshot::{Entry, EntryId, Kind, Tree};
pub use check::{Difference, Problem, differences};
pub use confined::{Confined, Status};
pub use outcome::{Error as PrepareError, PreparedCounts, Settings};
pub use place::{RootPath, make_directory};
pub use plan::{Attributes, Plan, PlannedPath, Requirement};
pub use prepare::prepare;
pub use prescan::{Prescan, prescan};

/// The snapshot that belongs to a trace: `NAME.tree.parquet` beside `NAME.calls.parquet`.
pub fn beside(trace: &Path) -> PathBuf {
    let name = trace.file_name().unwrap_or_default().as_encoded_bytes();
    let endings = [b".calls.parquet".as_slice(), b".parquet", b".strace", b".txt"];
    let stem = endings.iter().find_map(|ending| name.strip_suffix(*ending)).unwrap_or(name);
    let name = [stem, b".tree.parquet"].concat();
    trace.with_file_name(OsStr::from_bytes(&name))
}
