//! `convert` and `edit` of any rows.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::Result;
use iosonar_trace::transforms::{Pipeline, Rows as Input, Transformed, read_by};
use iosonar_trace::{ConversionLoss, Footer, Nanos, Reader, Row, Writer};
use serde_json::json;

use super::described::{Described, number, seconds, text};
use super::opened::{Job, Opened};
use crate::console::status;
use crate::human;
use crate::progress::Rows;

/// Bytes of rows in a batch between the reading and the writing thread, so that it stays in a cache, and the most batches in
/// the queue.
const BATCH_BYTES: usize = 128 << 10;
const BATCHES: usize = 64;

/// The most warnings that are printed.
const MAX_NOTES: usize = 100;

/// Writes the rows of a file, edited if there are transforms, and reports what was written.
pub fn write<R: Described + Transformed>(
    job: &Job<'_>,
    file: Opened<R>,
    pipeline: Option<Pipeline<R>>,
    create: impl FnOnce(&R::Metadata) -> Result<Box<dyn Writer<R>>>,
) -> Result<R::Metadata> {
    match pipeline {
        None => write_as_is(job, file, create),
        Some(pipeline) => {
            let Opened { rows, accept, .. } = file;
            let has_rows = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&has_rows);
            let rows = pipeline.apply(read_by(rows, move |rows| {
                let row = rows.next()?;
                if row.is_some() {
                    seen.store(true, Ordering::Relaxed);
                }
                Ok(row)
            }))?;
            // Transforms may leave nothing of an input that has rows.
            let accept = Box::new(
                move |metadata: &R::Metadata| {
                    if has_rows.load(Ordering::Relaxed) { Ok(()) } else { accept(metadata) }
                },
            );
            copied(job, "editing", Opened { rows, accept, ..file }, create)
        }
    }
}

/// Writes the rows of a file, and reports what was written.
pub fn write_as_is<R: Described>(
    job: &Job<'_>,
    file: Opened<R>,
    create: impl FnOnce(&R::Metadata) -> Result<Box<dyn Writer<R>>>,
) -> Result<R::Metadata> {
    status!("{}: {}", file.name, file.described);
    copied(job, "converting", file, create)
}

fn copied<R: Described>(
    job: &Job<'_>,
    doing: &str,
    file: Opened<R>,
    create: impl FnOnce(&R::Metadata) -> Result<Box<dyn Writer<R>>>,
) -> Result<R::Metadata> {
    let writer = create(file.rows.metadata())?;
    let last_end = Arc::new(AtomicI64::new(i64::MIN));
    let latest = Arc::clone(&last_end);
    let rows = if R::HAS_END {
        read_by(file.rows, move |rows| {
            let row = rows.next()?;
            row.iter().for_each(|row| _ = latest.fetch_max(row.end().0, Ordering::Relaxed));
            Ok(row)
        })
    } else {
        file.rows
    };
    let (read, loss) = copy(&format!("{doing} {}", file.name), rows, writer, file.accept)?;
    let metadata = R::written(job.output, read);
    report::<R>(job.output, &metadata, &loss, Nanos(last_end.load(Ordering::Relaxed)));
    if metadata.rows() == 0 {
        status!("warning: the result has no {}s", R::NOUN);
    }
    Ok(metadata)
}

/// A batch of rows.
struct Batch<R: Row> {
    rows: Vec<R>,
    /// What was learned with this batch: writers need it before the rows.
    known: Option<Box<R::Metadata>>,
    /// The reader's progress after them.
    progress: Option<f64>,
}

/// Writes all rows, and finishes the file if `accept` agrees with the final metadata. Returns the metadata, and what the format
/// could not hold.
///
/// A separate thread reads, because reading takes about as long as writing.
pub fn copy<R: Row>(
    what: &str,
    mut rows: Input<R>,
    mut writer: Box<dyn Writer<R>>,
    accept: impl FnOnce(&R::Metadata) -> Result<()>,
) -> Result<(R::Metadata, ConversionLoss)> {
    let mut progress = Rows::of(what, R::NOUN);
    let (to_writer, from_reader) = mpsc::sync_channel::<Batch<R>>(BATCHES);
    let rows = &mut rows;
    // The writer was created with these.
    let mut named = rows.metadata().named();
    let mut metadata = thread::scope(|scope| -> Result<R::Metadata> {
        let reading = scope.spawn(move || -> Result<R::Metadata> {
            loop {
                let read = read_batch(rows.as_mut())?;
                let metadata = rows.metadata();
                let known = (metadata.named() > named).then(|| Box::new(metadata.clone()));
                named = metadata.named();
                // The writer has failed.
                if read.is_empty() || to_writer.send(Batch { rows: read, known, progress: rows.progress() }).is_err() {
                    return Ok(rows.metadata().clone());
                }
            }
        });
        for batch in from_reader {
            if let Some(known) = batch.known {
                writer.learn(&known);
            }
            for row in batch.rows {
                writer.write_owned(row)?;
                progress.row(|| batch.progress);
            }
        }
        match reading.join() {
            Ok(metadata) => metadata,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    progress.finish();
    for doubt in metadata.doubts() {
        metadata.add_warning(format!("doubtful: {doubt}"));
    }
    accept(&metadata)?;
    let loss = writer.finish(&metadata)?;
    Ok((metadata, loss))
}

/// The next batch; empty at the end.
fn read_batch<R: Row>(rows: &mut dyn Reader<R>) -> Result<Vec<R>> {
    let most = BATCH_BYTES / size_of::<R>();
    let mut batch = Vec::with_capacity(most);
    while batch.len() < most
        && let Some(row) = rows.next()?
    {
        batch.push(row);
    }
    Ok(batch)
}

/// Prints what was written, with notes and warnings. Rows end at `end`, or at the last time of the span if that is later.
pub fn report<R: Described>(output: &Path, metadata: &R::Metadata, loss: &ConversionLoss, end: Nanos) {
    let about = json!(metadata);
    let warnings = about["warnings"].as_array().map_or(&[][..], Vec::as_slice);
    for warning in warnings.iter().take(MAX_NOTES) {
        status!("note: {}", text(warning));
    }
    if warnings.len() > MAX_NOTES {
        status!("note: and {} more; `iosonar info --json` shows all", warnings.len() - MAX_NOTES);
    }
    let counts = &about["counts"];
    for loss in R::LOSSES.iter().filter(|loss| !loss.warning.is_empty()) {
        let count = number(&counts[loss.key]);
        if count > 0 {
            status!("warning: {}", human::agreed(count, loss.warning));
        }
    }
    let unreadable = number(&counts["unreadable_rows"]);
    if unreadable > 0 {
        status!("warning: the input is damaged: {} unreadable, left out", human::counted(unreadable, "row"));
    }
    if about["complete"] == false {
        status!("warning: the input was cut short; its readable part was used");
    }
    for warning in &loss.warnings {
        status!("warning: {warning}");
    }
    let size = fs::metadata(output).map_or(String::new(), |s| format!(", {}", human::bytes(s.len())));
    let rows = human::counted(metadata.rows(), R::NOUN);
    let held = match loss.rows {
        0 => rows + &(R::MIX)(counts),
        left_out => format!("{} of {rows}", human::count(metadata.rows().saturating_sub(left_out))),
    };
    let name = if output.as_os_str() == "-" { "standard output".to_owned() } else { output.display().to_string() };
    status!("{name}: {held} over {}{size}", human::span(seconds(&about["span"], end)));
}

#[cfg(test)]
mod tests;
