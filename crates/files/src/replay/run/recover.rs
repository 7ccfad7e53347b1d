//! Makes the result of a replay that was killed.

use std::path::Path;

use iosonar_trace::journal::{self, Journal};
use iosonar_trace::run_info::{OpenMap, OptionValue};

use super::checks::check_name;
use super::execution::{Finished, publish};
use crate::replay::error::Result;
use crate::replay::journal::Recorded;
use crate::replay::statistics::{Counter, Engine};

/// The warning in the result of a replay that was killed.
const RECOVERED: &str =
    "the replay was killed: calls of its last seconds may be missing, and files are as it left them";

/// Whether the file is the journal of a replay of calls.
pub fn is_journal(path: &Path) -> bool {
    use iosonar_trace::journal::Entry as _;
    journal::layout_of(path).is_some_and(|layout| Recorded::LAYOUTS.contains(&layout))
}

/// Writes the result of a replay that was killed, from its journal. Counts the statistics anew, and marks the result as
/// incomplete.
///
/// # Errors
/// If the journal is damaged at its start, or the result cannot be written. Then the journal is kept.
pub fn recover(journal: &Path, output: &Path) -> Result<Finished> {
    check_name(output)?;
    let mut rows = Journal::<Recorded>::open(journal)?;
    let mut metadata = rows.header().clone();
    let run = metadata.run.get_or_insert_default();
    let options = run.options.known().cloned().unwrap_or_default();
    let mut counter = Counter::again(&options, run.statistics.known());
    while let Some(entry) = rows.next_entry()? {
        counter.add(&entry.row, entry.begin_in_trace);
    }
    let factor = options.get("factor").number().unwrap_or(1.0);
    let fake = run.fake.text().map(str::to_owned);
    let statistics = counter.statistics(factor, false, Engine::default(), fake);
    run.warnings = [run.warnings.list(), &[RECOVERED.to_owned()]].concat().into();
    run.statistics = OpenMap::of(&statistics).into();
    metadata.complete = false;
    let replaces = *options.get("overwrite") == OptionValue::Flag(true);
    let losses = publish(journal, output, replaces, &metadata)?;
    let warnings = [vec![RECOVERED.to_owned()], losses].concat();
    Ok(Finished { output: output.to_owned(), statistics, warnings })
}
