//! Copies rows to a new file, and reports what was written.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, bail};
use iosonar_trace::output::{Existing, Output, refuse_block_device, split_compression};
use iosonar_trace::{ConversionLoss, Device, Format, IoResult, Kind, Metadata, Nanos, Reader, Request, Writer};

use crate::console::status;
use crate::fio;
use crate::human;
use crate::progress::Rows;
use crate::signals;
use crate::usage::misuse;

/// Rows of a batch between the reading and the writing thread, and the most batches in the queue.
const BATCH: usize = 8192;
const BATCHES: usize = 32;

/// A batch of rows.
struct Batch<Row> {
    rows: Vec<Row>,
    /// Devices that first appear in this batch: writers need them before the rows.
    devices: Vec<Device>,
    /// The reader's progress after them.
    progress: Option<f64>,
}

/// Writes all rows, and finishes the file if `accept` agrees with the final metadata. Returns the metadata, and what the format
/// could not hold.
///
/// A separate thread reads, because reading takes about as long as writing.
pub fn copy<Row: Send>(
    what: &str,
    mut rows: Box<dyn Reader<Row>>,
    mut writer: Box<dyn Writer<Row>>,
    accept: impl FnOnce(&Metadata) -> Result<()>,
) -> Result<(Metadata, ConversionLoss)> {
    let mut progress = Rows::new(what);
    let (to_writer, from_reader) = mpsc::sync_channel::<Batch<Row>>(BATCHES);
    let rows = &mut rows;
    // The writer was created with these.
    let mut devices_sent = rows.metadata().devices.len();
    let mut metadata = thread::scope(|scope| -> Result<Metadata> {
        let reading = scope.spawn(move || -> Result<Metadata> {
            loop {
                let read = read_batch(rows.as_mut())?;
                let known = &rows.metadata().devices;
                let devices = known.get(devices_sent..).unwrap_or_default().to_vec();
                devices_sent = known.len();
                // The writer has failed.
                if read.is_empty() || to_writer.send(Batch { rows: read, devices, progress: rows.progress() }).is_err()
                {
                    return Ok(rows.metadata().clone());
                }
            }
        });
        for batch in from_reader {
            if !batch.devices.is_empty() {
                writer.learn_devices(&batch.devices);
            }
            for row in &batch.rows {
                writer.write(row)?;
                progress.row(|| batch.progress);
            }
        }
        match reading.join() {
            Ok(metadata) => metadata,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    progress.finish();
    for warning in iosonar_trace::plausibility_warnings(&metadata) {
        metadata.notice(format!("doubtful: {warning}"));
    }
    accept(&metadata)?;
    let loss = writer.finish(&metadata)?;
    Ok((metadata, loss))
}

/// The next batch; empty at the end.
fn read_batch<Row>(rows: &mut dyn Reader<Row>) -> Result<Vec<Row>> {
    let mut batch = Vec::with_capacity(BATCH);
    while batch.len() < BATCH
        && let Some(row) = rows.next()?
    {
        batch.push(row);
    }
    Ok(batch)
}

/// Prints what was written, with notes and warnings.
pub fn report(output: &Path, format: &Format, metadata: &Metadata, loss: &ConversionLoss) {
    for notice in &metadata.notices {
        status!("note: {notice}");
    }
    let (counts, span) = (&metadata.counts, &metadata.span);
    for (count, what) in [
        (counts.bad_lines, "lines left out as bad"),
        (counts.lost_events, "events lost when the trace was recorded"),
        (counts.unmatched, "requests without completion in the trace"),
        (counts.unmatched_completions, "completions without their request in the trace"),
        (
            counts.impossible_times,
            "times of a request left out as impossible (latency or queueing negative, or beyond a year)",
        ),
    ] {
        if count > 0 {
            status!("warning: {}", human::agreed(count, what));
        }
    }
    if !metadata.complete {
        status!("warning: the input was cut short; its readable part was used");
    }
    for warning in &loss.warnings {
        status!("warning: {warning}");
    }
    let size = fs::metadata(output).map_or(String::new(), |s| format!(", {}", human::bytes(s.len())));
    let requests = human::counted(counts.requests, "request");
    let held = match loss.rows {
        0 => {
            let (reads, writes) = (human::counted(counts.reads, "read"), human::counted(counts.writes, "write"));
            format!("{requests} ({reads}, {writes}, {})", human::counted(counts.others, "other"))
        }
        left_out => format!("{} of {requests}", human::count(counts.requests.saturating_sub(left_out))),
    };
    let lasted = human::span((Nanos(span.last_ns) - Nanos(span.first_ns)).as_secs());
    status!("{}: {held} over {lasted}{size}", output.display());
    if format.name == "fio-iolog" {
        fio::advice(output, metadata).lines().for_each(|line| status!("{line}"));
    }
}

/// Whether to replace an existing file.
#[derive(clap::Args)]
pub struct Replacing {
    /// Overwrite the output if it exists
    #[arg(long)]
    overwrite: bool,
}

impl Replacing {
    /// Refuses an existing file without --overwrite, and a block device always.
    pub fn allows(&self, output: &Path) -> Result<()> {
        let Ok(status) = fs::metadata(output) else { return Ok(()) };
        refuse_block_device(&status).with_context(|| output.display().to_string())?;
        if !self.overwrite && status.is_file() {
            bail!("{} exists; name another output, or replace it with --overwrite", output.display());
        }
        Ok(())
    }

    /// Creates a load. From now on, a signal ends the program and removes the unfinished file.
    pub fn create_load(
        &self,
        output: &Path,
        format: &'static Format,
        known: &Metadata,
    ) -> Result<Box<dyn Writer<Request>>> {
        let Some(create) = format.create_load else { return Ok(iosonar_trace::create_load_as(output, format, known)?) };
        Ok(create(self.begin(output)?, known)?)
    }

    /// Creates a run, like [`Self::create_load`].
    pub fn create_run(
        &self,
        output: &Path,
        format: &'static Format,
        known: &Metadata,
    ) -> Result<Box<dyn Writer<IoResult>>> {
        let Some(create) = format.create_run else { return Ok(iosonar_trace::create_run_as(output, format, known)?) };
        Ok(create(self.begin(output)?, known)?)
    }

    /// Creates an output. From now on, a signal ends the program and removes the unfinished file.
    pub fn begin(&self, output: &Path) -> Result<Output> {
        // Again, as it may have appeared since.
        self.allows(output)?;
        signals::remove_unfinished_files();
        let existing = if self.overwrite { Existing::ReplaceAny } else { Existing::ReplaceKnown };
        Ok(Output::create_as(output, existing)?)
    }
}

/// Refuses an existing file and a block device, for a recording.
pub fn refuse_existing(output: &Path) -> Result<()> {
    let Ok(status) = fs::metadata(output) else { return Ok(()) };
    refuse_block_device(&status).with_context(|| output.display().to_string())?;
    if status.is_file() {
        bail!("{} exists; remove it, or name another file with --output", output.display());
    }
    Ok(())
}

/// Refuses the name of a run for a load.
pub fn refuse_name_of_run(output: &Path) -> Result<()> {
    if kind_by_name(output) == Some(Kind::Replay) {
        misuse!("{} is the name of a run, but the output is a load; name it NAME.load…", output.display());
    }
    Ok(())
}

/// The kind of file by its name, such as `x.load.parquet` or `x.replay.gz`.
pub fn kind_by_name(path: &Path) -> Option<Kind> {
    let name = split_compression(path).0.to_string_lossy();
    let name = name.strip_suffix(".parquet").unwrap_or(&name);
    if name.ends_with(".load") {
        Some(Kind::Load)
    } else if name.ends_with(".replay") {
        Some(Kind::Replay)
    } else {
        None
    }
}

/// Refuses to overwrite the input.
pub fn refuse_same_file(input: &Path, output: &Path) -> Result<()> {
    let identity = |path: &Path| -> io::Result<_> {
        let status = fs::metadata(path)?;
        Ok((status.dev(), status.ino(), status.is_file()))
    };
    if let (Ok(one), Ok(other)) = (identity(input), identity(output))
        && one == other
        && one.2
    {
        misuse!("{} and {} are the same file; name another output", input.display(), output.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use iosonar_trace::{DeviceId, Op, Sector, Sectors};

    use super::*;

    /// A load with a request for each device, where each device appears with its request.
    struct Late(u16, Metadata);

    impl Reader<Request> for Late {
        fn next(&mut self) -> iosonar_trace::Result<Option<Request>> {
            let device = self.1.counts.requests as u16;
            if device == self.0 {
                return Ok(None);
            }
            if device > 0 {
                self.1.devices.push(Device { name: device.to_string(), sectors: None });
            }
            let request = Request::new(Nanos::ZERO, Op::Read, Sector(0), Sectors(8));
            self.1.count_request(&request);
            Ok(Some(Request { device: DeviceId(device), ..request }))
        }

        fn metadata(&self) -> &Metadata {
            &self.1
        }
    }

    /// Collects the name under which the writer knows each request's device.
    struct Noting(Vec<String>, Arc<Mutex<Vec<String>>>);

    impl Writer<Request> for Noting {
        fn write(&mut self, row: &Request) -> iosonar_trace::Result<()> {
            self.1.lock().unwrap().push(self.0[usize::from(row.device.0)].clone());
            Ok(())
        }

        fn learn_devices(&mut self, new: &[Device]) {
            self.0.extend(new.iter().map(|device| device.name.clone()));
        }

        fn checkpoint(&mut self, _: &Metadata) -> iosonar_trace::Result<()> {
            Ok(())
        }

        fn finish(self: Box<Self>, _: &Metadata) -> iosonar_trace::Result<ConversionLoss> {
            Ok(ConversionLoss::default())
        }
    }

    #[test]
    fn writers_learn_devices_before_their_rows() {
        let noted = Arc::default();
        let writer = Noting(vec!["first".into()], Arc::clone(&noted));
        let devices = 3 * BATCH as u16;
        let rows = Late(devices, Metadata::new(Kind::Load, "test"));
        copy("a test", Box::new(rows), Box::new(writer), |_| Ok(())).unwrap();
        let expected = (0..devices).map(|device| if device == 0 { "first".into() } else { device.to_string() });
        assert!(expected.eq(noted.lock().unwrap().iter().cloned()));
    }
}
