//! What the commands found.

use serde_json::Value;

/// What a cache is filled with.
pub struct Found {
    /// All numbers.
    pub object: Value,
    /// For people.
    pub text: String,
    /// The curve, with its heading.
    pub csv: String,
}
