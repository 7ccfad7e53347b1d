//! Turns a journal into the result of its run.

use std::fs;
use std::path::Path;

use super::{Entry, Journal, MetadataOf};
use crate::error::{Error, Result};
use crate::human::agreed;
use crate::io::stream::{Reader as _, Writer};
use crate::model::row::Footer as _;

/// Converts a closed journal to a result that `create` begins, and removes the journal when the result is complete. `change`
/// is done to each row. Damage is counted in the result, too. Returns warnings about losses.
///
/// # Errors
/// If the result cannot be written; then the journal is kept.
pub fn publish<E: Entry>(
    journal: &Path,
    output: &Path,
    replaces: bool,
    metadata: &MetadataOf<E>,
    create: impl FnOnce() -> Result<Box<dyn Writer<E::Row>>>,
    change: impl Fn(&mut E::Row),
) -> Result<Vec<String>> {
    let left = journal.display();
    if output.exists() && !replaces {
        let text = "was created during the run and is not replaced; the journal has everything: run";
        return Err(Error::Request(format!("{} {text} `iosonar recover {left} --output ANOTHER`", output.display())));
    }
    let write = || {
        let mut rows = Journal::<E>::open(journal)?;
        let mut writer = create()?;
        while let Some(mut row) = rows.next()? {
            change(&mut row);
            writer.write_owned(row)?;
        }
        let mut metadata = metadata.clone();
        let mut damage = Vec::new();
        for (rows, words) in [
            (rows.damaged(), "rows are missing: the journal is damaged there"),
            (rows.repeated(), "rows are left out: the journal has them a second time, and the first counts"),
        ] {
            if rows > 0 {
                damage.push(agreed(rows, words));
                metadata.count_bad_rows(rows, agreed(rows, words));
            }
        }
        let losses = writer.finish(&metadata)?.warnings;
        Ok([losses, damage].concat())
    };
    let losses = write().map_err(|error: Error| {
        Error::Request(format!(
            "{error}; the result is not written, but nothing is lost: remove the cause (make room on a full disk), then run \
             `iosonar recover {left}`"
        ))
    })?;
    fs::remove_file(journal).map_err(|e| Error::io(journal, e))?;
    Ok(losses)
}
