//! Copies calls to a new file, and reports what was written.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use anyhow::{Result, bail};
use iosonar_files::{Call, CallReader, CallWriter, FileKind, Metadata};
use iosonar_trace::Nanos;

use super::kind_by_name;
use crate::console::status;
use crate::human;
use crate::progress::Rows;
use crate::usage::misuse;
use crate::written::Replacing;

/// Calls of a batch between the reading and the writing thread, so that it stays in a cache, and the most batches in the queue.
const BATCH: usize = 512;
const BATCHES: usize = 16;

/// The most notices that are printed.
const MOST_NOTES: usize = 20;

/// Creates the output, whose name determines its format.
pub fn create(output: &Path, replacing: &Replacing, known: &Metadata) -> Result<Box<dyn CallWriter>> {
    match kind_by_name(output) {
        Some(FileKind::Calls) => Ok(iosonar_files::table::create_in(replacing.begin(output)?, known)?),
        Some(FileKind::CallsRun) => misuse!(
            "{} is the name of a run, and only `iosonar files replay` makes one; name the output NAME.calls.parquet",
            output.display()
        ),
        _ => misuse!("{}: the input is a trace of calls; name the output NAME.calls.parquet", output.display()),
    }
}

/// Writes all calls. A separate thread reads, because reading takes about as long as writing.
pub fn copy(what: &str, mut calls: Box<dyn CallReader>, mut writer: Box<dyn CallWriter>) -> Result<Metadata> {
    let mut progress = Rows::of(what, "calls");
    let (to_writer, from_reader) = mpsc::sync_channel::<(Vec<Call>, Option<f64>)>(BATCHES);
    let calls = &mut calls;
    let metadata = thread::scope(|scope| -> Result<Metadata> {
        let reading = scope.spawn(move || -> Result<Metadata> {
            loop {
                let mut batch = Vec::with_capacity(BATCH);
                while batch.len() < BATCH
                    && let Some(call) = calls.next()?
                {
                    batch.push(call);
                }
                // The receiver is gone if the writer has failed.
                if batch.is_empty() || to_writer.send((batch, calls.progress())).is_err() {
                    return Ok(calls.metadata().clone());
                }
            }
        });
        for (batch, done) in from_reader {
            for call in batch {
                writer.write_owned(call)?;
                progress.row(|| done);
            }
        }
        match reading.join() {
            Ok(metadata) => metadata,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    if progress.finish() == 0 && metadata.counts.bad_lines > 0 {
        bail!("no call could be read: all {} lines are bad", human::count(metadata.counts.bad_lines));
    }
    writer.finish(&metadata)?;
    Ok(metadata)
}

/// Prints what was written, with notes and warnings. `calls` and `span` are those of the output.
pub fn report(output: &Path, metadata: &Metadata) -> Result<()> {
    for notice in metadata.notices.iter().take(MOST_NOTES) {
        status!("note: {notice}");
    }
    if metadata.notices.len() > MOST_NOTES {
        status!("note: and {} more; `iosonar info --json` shows all", metadata.notices.len() - MOST_NOTES);
    }
    let counts = &metadata.counts;
    if counts.bad_lines > 0 {
        status!("warning: {} left out, because they could not be understood", human::counted(counts.bad_lines, "line"));
    }
    if counts.lost_events > 0 {
        status!("warning: {} lost when the trace was recorded", human::counted(counts.lost_events, "event"));
    }
    if !metadata.complete {
        status!("warning: the input was cut short; its readable part was used");
    }
    let size = fs::metadata(output).map_or(String::new(), |status| format!(", {}", human::bytes(status.len())));
    let lasted = human::span((Nanos(metadata.span.last_ns) - Nanos(metadata.span.first_ns)).as_secs());
    status!("{}: {} over {lasted}{size}", output.display(), human::counted(counts.calls, "call"));
    if counts.calls == 0 {
        status!("warning: the result has no calls");
    }
    Ok(())
}

/// The metadata of a table that was just written, whose totals are those of its rows.
pub fn footer_of(output: &Path, read: Metadata) -> Metadata {
    // Standard output cannot be read again.
    let Ok(reader) = iosonar_files::open(output, &iosonar_files::OpenOptions::default()) else { return read };
    reader.metadata().clone()
}
