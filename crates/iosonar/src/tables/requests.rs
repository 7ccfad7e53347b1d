//! Requests and their results: loads and runs.

pub mod formats;
mod lines;
mod summary;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use iosonar_replay::run::{self, Finished};
use iosonar_trace::formats::Opened as Trace;
use iosonar_trace::input::Input;
use iosonar_trace::{ConversionLoss, Format, IoResult, Kind, Metadata, Nanos, OpenedFile, Reader, Request, path_text};
use serde_json::{Map, Value, json};

use super::convert;
use super::described::{Described, Lines, Loss, number};
use super::edit::Edits;
use super::family::{AnyFile, Family};
use super::opened::{Job, Opened, name_of};
use super::recover::Recovered;
use crate::console::status;
use crate::fio;
use crate::human;
use crate::output_files::{kind_by_name, refuse_name_of_run};
use crate::statistics::for_people;
use formats::{FormatReading, about, described, refuse_empty};
use summary::{LoadSummary, RunSummary};

/// Loads and runs of any format.
pub static FAMILY: Family = Family {
    open: |inputs, _, reading| reading.requests.open(inputs).map(Some),
    open_input: |input, reading| reading.requests.open_input(input).map(Ok),
    edits: Edits::of::<Request>("a load", "Transforms (`iosonar edit --help-transform NAME` explains one):\n", ""),
    recover: |journal, output| {
        let Finished { warnings, statistics, .. } = run::recover(journal, output)?;
        Ok(Some(Recovered { warnings, statistics: for_people(&statistics) }))
    },
};

/// What messages call an input of this family.
const IS: &str = "a load or a run";

const LOSSES: &[Loss] = &[
    Loss::new("bad_lines", "bad lines", "", "lines left out as bad"),
    Loss::new("time_jumps", "time jumps", "", ""),
    Loss::new("lost_events", "lost events", "", "events lost when the trace was recorded"),
    Loss::new(
        "unmatched",
        "unmatched",
        " without a completion, so without a latency",
        "requests without completion in the trace",
    ),
    Loss::new(
        "unmatched_completions",
        "orphans",
        " without their request",
        "completions without their request in the trace",
    ),
    Loss::new(
        "impossible_times",
        "impossible",
        ": latency or queueing time negative or beyond a year, left out",
        "times of a request left out as impossible (latency or queueing negative, or beyond a year)",
    ),
];

/// Enters what loads and runs have in common. `work` is requests, and the seconds that they took.
fn enter_common(metadata: &Metadata, work: (u64, f64), object: &mut Map<String, Value>) {
    let (requests, duration) = work;
    object.insert("duration_s".into(), duration.into());
    object.insert("requests_per_s".into(), json!((duration > 0.0).then(|| requests as f64 / duration)));
    object.insert("unreadable_rows".into(), metadata.counts.unreadable_rows.into());
}

/// How loads and runs are opened.
impl FormatReading {
    /// Opens the files of one trace.
    fn open(&self, paths: &[PathBuf]) -> Result<Box<dyn AnyFile>> {
        let paths_of: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let (from, options) = self.how()?;
        Ok(opened(from, iosonar_trace::open_files(&paths_of, from, &options)?, name_of(paths)))
    }

    /// Opens an input that is open already.
    fn open_input(&self, input: Input) -> Result<Box<dyn AnyFile>> {
        let name = path_text(input.path());
        let (from, options) = self.how()?;
        Ok(opened(from, iosonar_trace::open_inputs(vec![input], from, &options)?, name))
    }
}

/// A file whose format was given or recognised.
fn opened(from: Option<&'static Format>, file: OpenedFile, name: String) -> Box<dyn AnyFile> {
    let (described, format) = (described(&file), about(&file));
    let (of_file, of_name) = (file.format, name.clone());
    let accept = Box::new(move |metadata: &Metadata| refuse_empty(&of_name, from, of_file, metadata));
    match file.rows {
        Trace::Load(rows) => Box::new(Opened { name, described, format, rows, accept }),
        Trace::Run(rows) => Box::new(Opened { name, described, format, rows, accept }),
    }
}

impl Described for Request {
    type Summary = LoadSummary;
    const LOSSES: &'static [Loss] = LOSSES;
    const LINES: fn(&Value, &mut Lines) = lines::add;
    const MIX: fn(&Value) -> String = mix;

    fn summary(_: &dyn Reader<Self>, _: Option<Nanos>) -> Self::Summary {
        LoadSummary::default()
    }

    fn due(&self, _: &Metadata) -> Nanos {
        self.at
    }

    fn count(&self, totals: &mut Metadata) {
        totals.count_request(self);
    }

    fn add(summary: &mut Self::Summary, row: &Self) {
        summary.request(row);
    }

    fn enter(summary: Self::Summary, metadata: &Metadata, object: &mut Map<String, Value>) {
        let duration = (Nanos(metadata.span.last_ns) - Nanos(metadata.span.first_ns)).as_secs();
        enter_common(metadata, (metadata.counts.requests, duration), object);
        object.extend(summary.json());
    }

    fn convert(file: Opened<Self>, job: &Job<'_>) -> Result<()> {
        let pipeline = job.pipeline::<Self>(IS)?;
        if pipeline.is_some() {
            refuse_name_of_run(job.output)?;
        } else if kind_by_name(job.output) == Some(Kind::Replay) {
            bail!("{} is a load: only `iosonar replay` makes a run of it; name the output NAME.load…", file.name);
        }
        let to = format(job)?;
        let metadata = convert::write(job, file, pipeline, |known| job.replacing.create_load(job.output, to, known))?;
        advise(job.output, to, &metadata);
        Ok(())
    }
}

impl Described for IoResult {
    type Summary = RunSummary;
    const LOSSES: &'static [Loss] = LOSSES;
    const LINES: fn(&Value, &mut Lines) = lines::add;
    const MIX: fn(&Value) -> String = mix;

    fn summary(rows: &dyn Reader<Self>, from: Option<Nanos>) -> Self::Summary {
        let run = rows.metadata().run.as_ref();
        let zero = run.map_or(Nanos::ZERO, |run| run.output_offset());
        RunSummary::new(from.map_or(zero, |from| from.max(zero)))
    }

    /// Without scheduled times, when it was issued.
    fn due(&self, known: &Metadata) -> Nanos {
        let is_asap = known.run.as_ref().is_some_and(|run| run.is_asap());
        self.issued.filter(|_| is_asap).unwrap_or(self.scheduled)
    }

    fn count(&self, totals: &mut Metadata) {
        totals.count_record(self);
    }

    fn add(summary: &mut Self::Summary, row: &Self) {
        summary.record(row);
    }

    fn enter(summary: Self::Summary, metadata: &Metadata, object: &mut Map<String, Value>) {
        enter_common(metadata, summary.work(), object);
        object.extend(summary.sizes.json());
        object.extend(summary.json());
    }

    fn convert(file: Opened<Self>, job: &Job<'_>) -> Result<()> {
        if job.pipeline.is_none() && kind_by_name(job.output) != Some(Kind::Load) {
            let to = format(job)?;
            let metadata = convert::write_as_is(job, file, |known| job.replacing.create_run(job.output, to, known))?;
            advise(job.output, to, &metadata);
            return Ok(());
        }
        // Before the run is sorted.
        if job.pipeline::<Request>(IS)?.is_some() {
            refuse_name_of_run(job.output)?;
        }
        let Opened { name, described, format, rows, accept } = file;
        let rows = iosonar_trace::into_load(Trace::Run(rows))?;
        Request::convert(Opened { name, described, format, rows, accept }, job)
    }
}

/// The format of the output.
fn format(job: &Job<'_>) -> Result<&'static Format> {
    Ok(job.to.map_or_else(|| iosonar_trace::format_for(job.output), Ok)?)
}

fn mix(counts: &Value) -> String {
    let of = |key, noun| human::counted(number(&counts[key]), noun);
    format!(" ({}, {}, {})", of("reads", "read"), of("writes", "write"), of("others", "other"))
}

/// Prints what was written, with notes, warnings and advice.
pub fn report(output: &Path, format: &Format, metadata: &Metadata, loss: &ConversionLoss) {
    // A request of a load has no end of its own.
    convert::report::<Request>(output, metadata, loss, Nanos(i64::MIN));
    advise(output, format, metadata);
}

fn advise(output: &Path, format: &Format, metadata: &Metadata) {
    if format.name == "fio-iolog" {
        fio::advice(output, metadata).lines().for_each(|line| status!("{line}"));
    }
}
