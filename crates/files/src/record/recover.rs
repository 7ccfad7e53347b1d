//! Joins the parts of a killed recording: its table until the last checkpoint, and the calls that were held back then.

use std::collections::{BTreeMap, btree_map};
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;

use iosonar_trace::{Error, Nanos, Result, Writer as _};

use crate::strace::packed::{self, Place};
use crate::strace::processes::Processes;
use crate::table::held::held_path;
use crate::{Call, OpenOptions, Recorder, table};

/// Writes the calls of a killed recording to `output`, and removes its files. `table` is its hidden file, which has been made
/// readable. Returns `None`, and does nothing, if the recording had no other file: the table is then all there is.
///
/// # Errors
/// If a file cannot be read or written; then nothing is removed.
pub fn recover(table: &Path, output: &Path) -> Result<Option<u64>> {
    let held_path = held_path(table);
    let mut held = match WaitingCalls::open(&held_path) {
        Ok(held) => held,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io(held_path, e)),
    };
    let mut calls = crate::open(table, &OpenOptions::default())?;
    let mut metadata = calls.metadata().clone();
    let mut writer = table::create(output, &metadata)?;
    // Strace does not name the process; the calls before tell it.
    let mut processes = (metadata.recorder == Recorder::Strace).then(Processes::default);
    let mut last: Vec<Call> = Vec::new();
    let mut rows = 0;
    while let Some(call) = calls.next()? {
        if let Some(processes) = &mut processes {
            processes.of(&call);
        }
        writer.write(&call)?;
        rows += 1;
        if last.first().is_some_and(|other| other.begin != call.begin) {
            last.clear();
        }
        last.push(call);
    }
    metadata = calls.metadata().clone();
    let from = metadata.part.as_ref().map_or(Nanos(i64::MIN), |part| Nanos(part.from_ns));
    let end = last.first().map_or(Nanos(i64::MIN), |call| call.begin);
    let is_in_table = |call: &Call| {
        call.begin < end.max(from)
            || last.iter().any(|other| (other.begin, other.thread, other.kind) == (call.begin, call.thread, call.kind))
    };
    while let Some(mut call) = held.next().map_err(|e| Error::io(&held_path, e))? {
        if is_in_table(&call) {
            continue;
        }
        if let Some(processes) = &mut processes {
            call.process = processes.of(&call);
        }
        writer.write(&call)?;
        rows += 1;
    }
    metadata.complete = false;
    metadata
        .warning("the recorder was killed: calls that were in progress, and calls of its last seconds, may be missing");
    writer.finish(&metadata)?;
    for path in [table, &held_path] {
        fs::remove_file(path).map_err(|e| Error::io(path, e))?;
    }
    Ok(Some(rows))
}

/// The calls of a file of [`table::held`], in the order of their start.
struct WaitingCalls {
    input: BufReader<File>,
    next: Option<(u64, Call)>,
    late: std::iter::Peekable<btree_map::IntoIter<u64, Call>>,
}

impl WaitingCalls {
    fn open(path: &Path) -> io::Result<Self> {
        let open = || -> io::Result<_> { Ok(BufReader::with_capacity(1 << 18, File::open(path)?)) };
        // Calls that were late are few: they were in progress at the time of a checkpoint.
        let mut late = BTreeMap::new();
        let mut first = open()?;
        while let Some((number, call, place)) = read(&mut first)? {
            if place == Place::Late {
                late.insert(number, call);
            }
        }
        let mut held = Self { input: open()?, next: None, late: late.into_iter().peekable() };
        held.advance()?;
        Ok(held)
    }

    fn advance(&mut self) -> io::Result<()> {
        self.next = loop {
            match read(&mut self.input)? {
                Some((_, _, Place::Late)) => {}
                other => break other.map(|(number, call, _)| (number, call)),
            }
        };
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<Call>> {
        let first = self.next.as_ref().map_or(u64::MAX, |(number, _)| *number);
        if let Some((_, call)) = self.late.next_if(|(number, _)| *number < first) {
            return Ok(Some(call));
        }
        let call = self.next.take().map(|(_, call)| call);
        self.advance()?;
        Ok(call)
    }
}

/// The next call. A damaged rest is the end: the program was killed while it wrote it.
fn read(input: &mut BufReader<File>) -> io::Result<Option<(u64, Call, Place)>> {
    match packed::read(input) {
        Err(e) if matches!(e.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) => Ok(None),
        other => other,
    }
}
