//! Serialises paths that are not valid UTF-8, which serde refuses.

use std::path::Path;

use serde::Serializer;

/// For `#[serde(serialize_with = …)]`: the path as text, with escapes such as `\xe9` for invalid bytes.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&iosonar_trace::path_text(path))
}
