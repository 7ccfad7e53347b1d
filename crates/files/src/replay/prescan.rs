//! Reads the window of a trace once before its replay: how many calls and threads it has, and which files were open before.

use std::collections::{BTreeMap, HashMap};

use iosonar_pacing::Stop;
use iosonar_trace::Nanos;

use super::error::{Error, Result};
use super::source::{Trace, Window};
use crate::state::{Counts, OpenDescription};
use crate::{Skip, Unreplayable};

/// What a prescan found.
#[derive(Clone, Debug, Default)]
pub struct Prescan {
    /// The number of the first call of the window.
    pub first: u64,
    /// Calls of the window.
    pub calls: u64,
    /// The start of the first of them.
    pub zero: Nanos,
    /// The start of the last of them.
    pub last: Nanos,
    /// A number from 0 for each thread of the window.
    pub threads: HashMap<u32, u32>,
    /// Descriptions that were open when the window began.
    pub open: Vec<OpenDescription>,
    /// Sentences about what could not be followed.
    pub warnings: Vec<String>,
    /// Calls by kind of blind spot: executed by io_uring, and mappings of files.
    pub uring: u64,
    /// See `uring`.
    pub mapped: u64,
    /// Changes of files that are not replayed, by what they do.
    pub unreplayable: BTreeMap<String, u64>,
    /// Whether the trace itself is complete.
    pub is_complete: bool,
}

/// Flags that must not make or empty a file that is opened again.
const MAKING: u64 = (libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC) as u64;

/// Reads the window.
///
/// # Errors
/// If the trace cannot be read, has no call in the window, or the replay was stopped.
pub fn scan(trace: &mut Trace, window: Window, stop: &Stop) -> Result<Prescan> {
    let mut found = Prescan::default();
    let mut number = 0;
    while let Some(call) = trace.read()? {
        if window.is_over(call.begin) {
            break;
        }
        let is_inside = window.contains(call.begin);
        let is_first = is_inside && found.calls == 0;
        if is_first {
            (found.first, found.zero) = (number, call.begin);
            found.open.extend(trace.state().open_descriptions());
        }
        let resolved = trace.resolve(&call);
        if is_first {
            // Opens that had ended by then.
            found.open.extend(trace.state().open_descriptions());
            found.open.retain(|open| Some(open.id) != resolved.makes);
        }
        let inferred = trace.state().take_inferred();
        if is_inside {
            found.open.extend(inferred);
            found.calls += 1;
            found.last = call.begin;
            found.uring += u64::from(call.is_uring);
            found.mapped +=
                u64::from(resolved.skip == Some(Skip::Mapped) || resolved.unreplayable == Some(Unreplayable::Mapping));
            if let Some(change) = resolved.unreplayable {
                *found.unreplayable.entry(change.to_string()).or_default() += 1;
            }
            let next = found.threads.len() as u32;
            found.threads.entry(call.thread).or_insert(next);
        } else if let (Some(id), Some(path), None) = (resolved.makes, resolved.path, resolved.skip)
            && call.end().is_some_and(|end| end >= window.start)
        {
            // Opened across the start of the window.
            let flags = call.flags & !MAKING;
            found.open.push(OpenDescription { id, path, flags, position: 0, is_deleted: false });
        }
        number += 1;
        if number.is_multiple_of(1 << 16) && stop.is_requested() {
            return Err(Error::Stopped);
        }
    }
    if found.calls == 0 {
        return Err(Error::Options(match number {
            0 => "the trace has no calls".into(),
            _ => "no call of the trace begins in the window; choose another --start and --end".into(),
        }));
    }
    found.open.sort_by_key(|open| open.id);
    found.open.dedup_by_key(|open| open.id);
    // Of the calls before the window, changes that are not replayed do not matter.
    found.warnings = Counts { unreplayable: found.unreplayable.clone(), ..trace.state().counts() }.warnings();
    found.is_complete = trace.reader().metadata().complete;
    Ok(found)
}
