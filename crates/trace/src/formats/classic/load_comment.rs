//! What a load lacks: losses of its recording and reading, in a comment line after its rows that only iosonar reads. Like all
//! comments, it has no `;`.

use serde::{Deserialize, Serialize};

use crate::model::metadata::{Counts, Metadata};

/// The beginning of the line.
pub const PREFIX: &[u8] = b"# iosonar-load ";

#[derive(Serialize, Deserialize)]
struct LoadComment {
    /// Whether the load was cut short.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut_short: bool,
    #[serde(flatten)]
    counts: Counts,
}

/// The line; nothing if nothing was lost.
pub fn line(metadata: &Metadata) -> String {
    let lost = LoadComment { cut_short: !metadata.complete, counts: metadata.counts.losses() };
    let Ok(serde_json::Value::Object(mut lost)) = serde_json::to_value(lost) else { return String::new() };
    lost.retain(|_, value| *value != 0);
    if lost.is_empty() {
        return String::new();
    }
    format!("{}{}\n", String::from_utf8_lossy(PREFIX), serde_json::Value::Object(lost))
}

/// Adds what a line says, without [`PREFIX`]. A file of several loads has several lines.
pub fn apply(text: &[u8], metadata: &mut Metadata) {
    if let Ok(lost) = serde_json::from_slice::<LoadComment>(text) {
        metadata.complete &= !lost.cut_short;
        metadata.counts.add_losses(&lost.counts);
    }
}
