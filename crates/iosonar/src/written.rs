//! What is written to a new file, and what is said of it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Result, bail};
use iosonar_trace::{Metadata, Nanos, Reader, Writer};

use crate::human;
use crate::progress::Rows;

/// Writes all rows, and ends the file. Returns what the rows turned out to be, and what the format could not hold.
pub fn copy<Row>(
    what: &str,
    mut rows: Box<dyn Reader<Row>>,
    mut writer: Box<dyn Writer<Row>>,
) -> Result<(Metadata, Vec<String>)> {
    let mut progress = Rows::new(what);
    while let Some(row) = rows.next()? {
        writer.write(&row)?;
        progress.row(|| rows.progress());
    }
    progress.finish();
    let mut metadata = rows.metadata().clone();
    for question in iosonar_trace::questions(&metadata) {
        metadata.notice(format!("doubtful: {question}"));
    }
    let losses = writer.finish(&metadata)?;
    Ok((metadata, losses))
}

/// Says on standard error what was written, and what is to be known of it.
pub fn say(output: &Path, metadata: &Metadata, losses: &[String]) {
    for notice in &metadata.notices {
        eprintln!("note: {notice}");
    }
    let (counts, span) = (&metadata.counts, &metadata.span);
    for (count, what) in [
        (counts.bad_lines, "bad lines were left out"),
        (counts.lost_events, "events were lost by whatever recorded the trace"),
        (counts.unmatched, "requests have no completion in the trace"),
    ] {
        if count > 0 {
            eprintln!("warning: {count} {what}");
        }
    }
    if !metadata.complete {
        eprintln!("warning: the input was cut short; what was readable of it was taken");
    }
    for loss in losses {
        eprintln!("warning: {loss}");
    }
    let size = fs::metadata(output).map_or(String::new(), |s| format!(", {}", human::bytes(s.len())));
    eprintln!(
        "{}: {} requests ({} reads, {} writes, {} others) over {}{size}",
        output.display(),
        counts.requests,
        counts.reads,
        counts.writes,
        counts.others,
        human::span((Nanos(span.last_ns) - Nanos(span.first_ns)).as_secs()),
    );
}

/// Refuses to write over what is being read.
pub fn refuse_same_file(input: &Path, output: &Path) -> Result<()> {
    let identity = |path: &Path| -> io::Result<_> {
        let status = fs::metadata(path)?;
        Ok((status.dev(), status.ino(), status.is_file()))
    };
    if let (Ok(one), Ok(other)) = (identity(input), identity(output))
        && one == other
        && one.2
    {
        bail!("{} and {} are the same file; give the output another name", input.display(), output.display());
    }
    Ok(())
}
