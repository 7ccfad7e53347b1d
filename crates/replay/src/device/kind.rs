//! What storage is.

use serde::Serialize;

/// Block device or regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A block device.
    Block,
    /// A regular file.
    File,
    /// No storage at all, for engines that do no I/O.
    None,
}
