//! Serialises paths that are not valid UTF-8, which serde refuses.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// For `#[serde(serialize_with = …)]`: the path as text, with escapes such as `\xe9` for invalid bytes.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&iosonar_trace::path_text(path))
}

/// The same for a path that may be missing.
pub fn optional<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(iosonar_trace::path_text).serialize(serializer)
}
