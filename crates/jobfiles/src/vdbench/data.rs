//! What the data of writes is like: `dedupratio`, `compratio`.

use super::definitions::{Definition, Definitions};
use crate::conversion::bytes_text;

/// The value of `data` of the streams on a storage, if the file says one.
pub fn of(all: &Definitions, storage: &Definition) -> Result<Option<String>, String> {
    let of_general = |name| all.general.as_ref().map_or(Ok(1.0), |general| ratio(general, name));
    let own = ratio(storage, "dedupratio")?;
    let dedupe = if own > 1.0 { own } else { of_general("dedupratio")? };
    let compression = of_general("compratio")?;
    let saved = |ratio: f64| (100.0 - 100.0 / ratio).round();
    let mut words = Vec::new();
    if compression > 1.0 {
        words.push(format!("compressible={}", saved(compression)));
    }
    if dedupe > 1.0 {
        words.push(format!("dedupe={}", saved(dedupe).min(99.0)));
    }
    if words.is_empty() {
        return Ok(None);
    }
    let unit = all.general.as_ref().map_or(Ok(None), |general| general.bytes("dedupunit"))?.unwrap_or(4096);
    if unit != 4096 {
        words.push(format!("block={}", bytes_text((unit / 512 * 512).clamp(512, 1 << 20))));
    }
    Ok(Some(words.join(" ")))
}

fn ratio(definition: &Definition, name: &'static str) -> Result<f64, String> {
    let ratio = definition.parsed(name, |text| {
        let ratio = text.parse::<f64>().ok().filter(|ratio| *ratio >= 1.0);
        ratio.ok_or_else(|| format!("`{text}` is not a ratio of 1 or more"))
    });
    Ok(ratio?.unwrap_or(1.0))
}
