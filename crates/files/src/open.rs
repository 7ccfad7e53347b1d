//! Opens files of calls, which are recognised by content.

use std::io::Seek;
use std::path::{Path, PathBuf};

use iosonar_trace::formats::parquet::{self, TableFile};
use iosonar_trace::input::Input;
use iosonar_trace::{Error, Reader, Result, path_text};

use crate::{Call, CallResult, InitialProcess, Metadata, nfsdump, strace, table};

/// The files of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A table of calls.
    Calls,
    /// A table of the results of a run.
    CallsRun,
    /// Strace text.
    Strace,
    /// The log of gVisor's strace.
    Gvisor,
    /// The text of nfsdump.
    Nfsdump,
}

/// How a file is read.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The working directory of the first process, where the file does not tell it.
    pub cwd: Option<PathBuf>,
}

/// Opens a file of calls; `-` is standard input.
///
/// # Errors
/// If the file cannot be read, or is not of a known format.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Box<dyn Reader<Call>>> {
    let files = strace::files_of(path);
    match &files[..] {
        [] => {}
        [one] => return open(one, options),
        _ => return open_several(&files, options),
    }
    let input = Input::open(path)?;
    if is_table(&input) {
        return table::open(input);
    }
    if nfsdump::recognise(input.head()) {
        return Ok(Box::new(nfsdump::Reader::open(input)));
    }
    if !matches!(kind_of_text(&input), Some(FileKind::Strace | FileKind::Gvisor)) {
        let problem = match input.damage() {
            Some(damage) => damage.to_owned(),
            None if input.head().is_empty() => "it is empty: there is no trace in it".to_owned(),
            None => "neither a table of calls (NAME.calls.parquet) nor strace text, nor that of gVisor or nfsdump"
                .to_owned(),
        };
        return Err(Error::format(path, problem));
    }
    strace_reader(input, options)
}

/// Opens the files of one trace, as `strace -ff -o NAME` writes them: `NAME.4711`, `NAME.4712`, …
///
/// # Errors
/// If a file cannot be read, or they are not the files of one trace.
pub fn open_several(paths: &[PathBuf], options: &OpenOptions) -> Result<Box<dyn Reader<Call>>> {
    match paths {
        [one] => open(one, options),
        _ => started(Box::new(strace::ThreadFiles::open(paths)?), options),
    }
}

/// Which of the files of this crate a regular file is; `None` if it is none of them, or cannot be read.
pub fn recognise(path: &Path) -> Option<FileKind> {
    if !path.is_file() {
        let is_strace = |path: &PathBuf| recognise(path) == Some(FileKind::Strace);
        return strace::files_of(path).iter().any(is_strace).then_some(FileKind::Strace);
    }
    let input = Input::open(path).ok()?;
    if !is_table(&input) {
        return kind_of_text(&input);
    }
    kind_of_table(&TableFile::open(path, input.into_file().ok()?).ok()?)
}

fn kind_of_text(input: &Input) -> Option<FileKind> {
    match input.head() {
        head if nfsdump::recognise(head) => Some(FileKind::Nfsdump),
        head if strace::is_gvisor(head) => Some(FileKind::Gvisor),
        head => strace::recognise(head).then_some(FileKind::Strace),
    }
}

fn kind_of_table(file: &TableFile<Metadata>) -> Option<FileKind> {
    let has = |names: &[&str]| names.iter().all(|name| file.has_column(name));
    match file.kind() {
        Some("calls") => Some(FileKind::Calls),
        Some("calls_run") => Some(FileKind::CallsRun),
        Some(_) => None,
        None if has(&["begin_ns", "thread", "call"]) => Some(FileKind::Calls),
        None if has(&["call_number", "scheduled_ns"]) => Some(FileKind::CallsRun),
        None => None,
    }
}

/// A file of this crate that is open.
pub enum Opened {
    /// Calls, from a table or from text.
    Calls(FileKind, Box<dyn Reader<Call>>),
    /// The results of a run.
    Run(Box<dyn Reader<CallResult>>),
}

/// Opens an input that is a file of this crate, such as a pipe, which can be read only once. Gives back any other.
///
/// # Errors
/// If the input cannot be read.
pub fn open_input(input: Input, options: &OpenOptions) -> Result<std::result::Result<Opened, Input>> {
    if !is_table(&input) {
        return Ok(match kind_of_text(&input) {
            Some(FileKind::Nfsdump) => Ok(Opened::Calls(FileKind::Nfsdump, Box::new(nfsdump::Reader::open(input)))),
            Some(kind) => Ok(Opened::Calls(kind, strace_reader(input, options)?)),
            None => Err(input),
        });
    }
    let path = input.path().to_owned();
    let mut file = input.into_file()?;
    let again = file.try_clone().map_err(|error| Error::io(&path, error))?;
    match TableFile::open(&path, again).ok().and_then(|table| kind_of_table(&table)) {
        Some(FileKind::CallsRun) => Ok(Ok(Opened::Run(table::run_in(&path, file)?))),
        Some(kind) => Ok(Ok(Opened::Calls(kind, table::calls_in(&path, file)?))),
        None => {
            file.rewind().map_err(|error| Error::io(&path, error))?;
            Ok(Err(Input::from_reader(&path, Box::new(file), None)?))
        }
    }
}

fn strace_reader(input: Input, options: &OpenOptions) -> Result<Box<dyn Reader<Call>>> {
    started(Box::new(strace::Reader::open(input, &strace::Options::default())?), options)
}

fn started(reader: Box<dyn Reader<Call>>, options: &OpenOptions) -> Result<Box<dyn Reader<Call>>> {
    match &options.cwd {
        Some(cwd) => Ok(Box::new(Started::new(reader, cwd)?)),
        None => Ok(reader),
    }
}

fn is_table(input: &Input) -> bool {
    (parquet::FORMAT.recognise)(input.head())
}

/// A trace whose first process was started in a known directory.
struct Started {
    calls: Box<dyn Reader<Call>>,
    first: Option<Call>,
    start: Option<InitialProcess>,
    metadata: Metadata,
}

impl Started {
    fn new(mut calls: Box<dyn Reader<Call>>, cwd: &Path) -> Result<Self> {
        let first = calls.next()?;
        let start = first.as_ref().map(|call| InitialProcess {
            process: if call.process == 0 { call.thread } else { call.process },
            threads: vec![call.thread],
            cwd: path_text(std::path::absolute(cwd).unwrap_or_else(|_| cwd.to_owned())),
            umask: None,
            descriptors: Vec::new(),
        });
        let mut started = Self { calls, first, start, metadata: Metadata::default() };
        started.take_metadata();
        Ok(started)
    }

    fn take_metadata(&mut self) {
        self.metadata = self.calls.metadata().clone();
        let known = &mut self.metadata.processes;
        if let Some(start) = self.start.clone().filter(|start| known.iter().all(|known| known.process != start.process))
        {
            known.push(start);
        }
    }
}

impl Reader<Call> for Started {
    fn next(&mut self) -> Result<Option<Call>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let next = self.calls.next()?;
        if next.is_none() {
            self.take_metadata();
        }
        Ok(next)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        self.calls.progress()
    }
}
