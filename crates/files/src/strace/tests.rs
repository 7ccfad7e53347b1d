//! Texts, and the calls in them.

mod forms;
mod gvisor;
mod interrupted;
mod thread_files;
mod written;

use std::io::Cursor;
use std::path::Path;

use iosonar_trace::Reader as _;
use iosonar_trace::input::Input;

use super::{Options, Reader};
use crate::{Call, Metadata};

/// Reads a text to its end.
fn try_read(text: &[u8], memory_bytes: Option<usize>) -> iosonar_trace::Result<(Vec<Call>, Metadata)> {
    let input = Input::from_reader(Path::new("x"), Box::new(Cursor::new(text.to_vec())), None)?;
    let mut reader = Reader::open(input, &Options { memory_bytes })?;
    let mut calls = Vec::new();
    while let Some(call) = reader.next()? {
        calls.push(call);
    }
    Ok((calls, reader.metadata().clone()))
}

fn read(text: &str) -> (Vec<Call>, Metadata) {
    try_read(text.as_bytes(), None).unwrap()
}

/// The only call of a text.
fn one(line: &str) -> Call {
    let (calls, about) = read(&format!("{line}\n"));
    assert_eq!((calls.len(), about.counts.bad_lines), (1, 0), "{line}: {:?}", about.warnings);
    calls.into_iter().next().unwrap()
}

/// Begin and duration in microseconds, thread, call and result of each call, as text.
fn brief(calls: &[Call]) -> Vec<String> {
    let brief = |call: &Call| {
        let duration = call.duration.map_or("-".to_owned(), |duration| (duration.0 / 1000).to_string());
        let result = call.result.map_or("?".to_owned(), |result| result.to_string());
        format!("{} {duration} {} {} {result}", call.begin.0 / 1000, call.thread, call.kind.name())
    };
    calls.iter().map(brief).collect()
}
