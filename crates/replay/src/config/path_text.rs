//! Paths in JSON: a path may hold bytes that are no UTF-8, which serde refuses to serialise.

use std::path::Path;

use serde::Serializer;

/// For `#[serde(serialize_with = …)]`: the path as text, with `\xe9` and the like for what is no UTF-8.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&iosonar_trace::path_text(path))
}
