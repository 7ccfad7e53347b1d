//! Calls to files and their results.

mod lines;
pub mod reading;
mod summary;
mod windows;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use iosonar_files::replay::{self, Finished};
use iosonar_files::table::Locator;
use iosonar_files::{Call, CallResult, FileKind, Metadata, OpenOptions, Opened as Trace};
use iosonar_trace::{Nanos, Reader, Row, path_text};
use serde_json::{Map, Value, json};

use super::convert::write;
use super::described::{Described, Lines, Loss};
use super::edit::Edits;
use super::family::{AnyFile, Family};
use super::opened::{Job, Opened, name_of};
use super::recover::Recovered;
use crate::human;
use crate::statistics::calls::for_people;
use crate::usage::misuse;
use summary::{RunSummary, Summary};

/// Traces of calls and their runs.
pub static FAMILY: Family = Family {
    open: |inputs, output, reading| {
        if reading.requests.is_described() {
            return Ok(None);
        }
        let Some(kind) = kind_of(inputs, output)? else { return Ok(None) };
        let trace = match kind {
            FileKind::CallsRun => Trace::Run(iosonar_files::table::open_run(&inputs[0])?),
            _ => Trace::Calls(kind, iosonar_files::open_several(inputs, &reading.calls.options())?),
        };
        Ok(Some(any(trace, name_of(inputs), inputs[0].is_file())))
    },
    open_input: |input, reading| {
        if reading.requests.is_described() {
            return Ok(Err(input));
        }
        let name = path_text(input.path());
        Ok(iosonar_files::open_input(input, &reading.calls.options())?.map(|trace| any(trace, name, true)))
    },
    edits: Edits::of::<Call>("a trace of calls", "\nTransforms of traces of calls:\n", "Of calls: "),
    recover: |journal, output| {
        if !replay::is_journal(journal) {
            return Ok(None);
        }
        let Finished { warnings, statistics, .. } = replay::recover(journal, output)?;
        Ok(Some(Recovered { warnings, statistics: for_people(&statistics) }))
    },
};

/// What messages call a trace.
const IS: &str = "a trace of calls";

const LOSSES: &[Loss] = &[
    Loss::new("uring", "io_uring", " executed by io_uring", ""),
    Loss::new("bad_lines", "bad lines", " could not be understood", "lines left out as bad"),
    Loss::new("lost_events", "lost events", " lost while recording", "events lost when the trace was recorded"),
];

/// Whether the inputs are a file of calls, or the files of strace -ff, according to their content. Standard input and pipes
/// are not read for this: then the name of the output decides.
fn kind_of(inputs: &[PathBuf], output: Option<&Path>) -> Result<Option<FileKind>> {
    let found = inputs.iter().find_map(|input| iosonar_files::recognise(input));
    let by_name = output.filter(|_| inputs.iter().any(|input| !input.is_file())).and_then(kind_by_name);
    let Some(kind) = found.or(by_name) else { return Ok(None) };
    if inputs.len() > 1 && kind != FileKind::Strace {
        misuse!("a trace of calls is a single file, unless strace -ff wrote it; name one input and one output");
    }
    Ok(Some(kind))
}

/// The kind of a file by its name: `NAME.calls.parquet`, or `NAME.strace` with or without compression.
fn kind_by_name(path: &Path) -> Option<FileKind> {
    let name = path.file_name()?.to_str()?;
    if name.ends_with(".calls.parquet") {
        return Some(FileKind::Calls);
    }
    if name.ends_with(".calls-run.parquet") {
        return Some(FileKind::CallsRun);
    }
    let bare = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    bare.ends_with(".strace").then_some(FileKind::Strace)
}

/// An open file. The kind is that of its content if `is_certain`.
fn any(trace: Trace, name: String, is_certain: bool) -> Box<dyn AnyFile> {
    match trace {
        Trace::Run(rows) => Box::new(opened(name, "a run of calls [calls-run]", "parquet", rows)),
        Trace::Calls(FileKind::Strace, rows) => {
            Box::new(opened(name, "a trace of calls, strace text [strace]", "strace", rows))
        }
        Trace::Calls(FileKind::Gvisor, rows) => {
            let described =
                "a trace of calls, log of gVisor's strace [gvisor] (unverified: never tested with a real one)";
            Box::new(opened(name, described, "gvisor", rows))
        }
        Trace::Calls(FileKind::Nfsdump, rows) => {
            Box::new(opened(name, "a trace of NFS requests, text of nfsdump [nfsdump]", "nfsdump", rows))
        }
        Trace::Calls(_, rows) => {
            Box::new(opened(name, if is_certain { "a trace of calls [calls]" } else { IS }, "parquet", rows))
        }
    }
}

fn opened<R: Row<Metadata = Metadata>>(
    name: String,
    described: &str,
    format: &str,
    rows: Box<dyn Reader<R>>,
) -> Opened<R> {
    let (of_name, is_text) = (name.clone(), format != "parquet");
    let accept = Box::new(move |metadata: &Metadata| {
        let counts = &metadata.counts;
        if is_text && counts.calls == 0 && counts.bad_lines > 0 {
            let wrong = metadata.warnings.first().map_or("", String::as_str);
            let lines = human::counted(counts.bad_lines, "bad line");
            bail!("{of_name} has no call, only {lines} ({wrong})");
        }
        Ok(())
    });
    Opened { name, described: described.to_owned(), format: format.into(), rows, accept }
}

impl Described for Call {
    type Summary = (Summary, Locator);
    const LOSSES: &'static [Loss] = LOSSES;
    const LINES: fn(&Value, &mut Lines) = |object, lines| lines::add(object, false, lines);
    const AFTER: fn(&Value) -> String = lines::table;

    fn summary(rows: &dyn Reader<Self>, from: Option<Nanos>) -> Self::Summary {
        (Summary::from(from), Locator::new(rows.metadata()))
    }

    const HAS_END: bool = true;

    fn end(&self) -> Nanos {
        self.begin + self.duration.unwrap_or_default()
    }

    fn pass((_, files): &mut Self::Summary, row: &Self) {
        files.next(row);
    }

    fn due(&self, _: &Metadata) -> Nanos {
        self.begin
    }

    fn count(&self, totals: &mut Metadata) {
        totals.count_call(self);
    }

    fn add((summary, files): &mut Self::Summary, row: &Self) {
        let (file, _) = files.next(row);
        summary.call(row, file.as_ref());
    }

    fn enter((summary, files): Self::Summary, _: &Metadata, object: &mut Map<String, Value>) {
        object.extend(summary.json());
        let lost: BTreeMap<String, u64> = files.lost();
        object.insert("changes_not_replayed".into(), json!(lost));
    }

    fn convert(file: Opened<Self>, job: &Job<'_>) -> Result<()> {
        let pipeline = job.pipeline::<Self>(IS)?;
        match kind_by_name(job.output) {
            Some(FileKind::Calls) => {}
            Some(FileKind::CallsRun) => misuse!(
                "{} is the name of a run, and only `iosonar files replay` makes one; name the output NAME.calls.parquet",
                job.output.display()
            ),
            _ => misuse!("{}: the input is a trace of calls; name the output NAME.calls.parquet", job.output.display()),
        }
        write(job, file, pipeline, |known| {
            Ok(iosonar_files::table::create_in(job.replacing.begin(job.output)?, known)?)
        })?;
        Ok(())
    }

    /// Its totals are those of its rows. Standard output cannot be read again.
    fn written(output: &Path, read: Metadata) -> Metadata {
        let reader = iosonar_files::open(output, &OpenOptions::default());
        reader.map_or(read, |reader| reader.metadata().clone())
    }

    fn rejoin(hidden: &Path, output: &Path) -> Result<Option<u64>> {
        Ok(iosonar_files::record::recover(hidden, output)?)
    }
}

impl Described for CallResult {
    type Summary = RunSummary;
    const LOSSES: &'static [Loss] = LOSSES;
    const LINES: fn(&Value, &mut Lines) = |object, lines| lines::add(object, true, lines);
    const AFTER: fn(&Value) -> String = lines::table;

    fn summary(_: &dyn Reader<Self>, from: Option<Nanos>) -> Self::Summary {
        RunSummary::new(from.unwrap_or_default())
    }

    /// Without times to keep, when it was issued.
    fn due(&self, known: &Metadata) -> Nanos {
        let is_asap = known.run.as_ref().is_some_and(|run| run.is_asap());
        self.issued.filter(|_| is_asap).unwrap_or(self.scheduled)
    }

    fn count(&self, totals: &mut Metadata) {
        totals.count_result(self);
    }

    fn add(summary: &mut Self::Summary, row: &Self) {
        summary.result(row);
    }

    fn enter(summary: Self::Summary, _: &Metadata, object: &mut Map<String, Value>) {
        object.extend(summary.json());
    }

    fn convert(file: Opened<Self>, _: &Job<'_>) -> Result<()> {
        let name = file.name;
        bail!("{name} is a run of calls, which no other format can hold; convert or edit the trace that it replayed")
    }
}
