//! Derived loads, as in the blkreplay manual, chapter 5.1.2: the busiest parts first.

use std::fmt::Write;

use crate::error::{Error, Result};
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::model::units::Nanos;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use crate::text::human;

use super::counted::{Counted, Source};
use super::spool::Spool;
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "derived",
        about: "Cuts the load into snippets of equal duration and sorts them, the busiest first",
        details: "The result begins with an overload; what follows shows how the device recovers. Snippets count\n\
                  from time zero; the last one and empty ones are dropped. They are dealt in turn to several\n\
                  outputs, of which this is one. `warnings` in the file has the rate and the original start of the\n\
                  first 1000, as IOPS@SECOND. Drops latencies, queueing times and the start date.",
        params: &[
            ParamSpec {
                name: "snippet",
                takes: ParamType::Time,
                default: ParamDefault::Value("300"),
                help: "duration of a snippet",
            },
            ParamSpec {
                name: "outputs",
                takes: ParamType::Count,
                default: ParamDefault::Value("1"),
                help: "number of outputs",
            },
            ParamSpec {
                name: "output",
                takes: ParamType::Count,
                default: ParamDefault::Value("1"),
                help: "which of them this is, from 1",
            },
        ],
        example: "derived snippet=5m outputs=4 output=2",
    },
    needs: Needs::Whole,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let (length, outputs, output) = (settings.time("snippet"), settings.count("outputs"), settings.count("output"));
    if length.0 < 1_000_000 {
        return Err("a snippet must last at least a millisecond".into());
    }
    if !(1..=outputs).contains(&output) {
        return Err(format!("output must be from 1 to {outputs}, because outputs={outputs}"));
    }
    Ok(Box::new(move |rows| apply(rows, length, outputs as usize, output as usize)))
}

/// The requests of one snippet: a range of request numbers.
struct Snippet {
    /// Snippet number from time zero, in the original load.
    index: i64,
    first: u64,
    count: u64,
}

fn apply(rows: Rows, length: Nanos, outputs: usize, output: usize) -> Result<Rows> {
    let mut snippets: Vec<Snippet> = Vec::new();
    let (requests, mut metadata) = Spool::of(rows, |number, request| {
        let index = request.at.0.div_euclid(length.0);
        match snippets.last_mut() {
            Some(last) if last.index == index => last.count += 1,
            _ => snippets.push(Snippet { index, first: number, count: 1 }),
        }
        Request { latency: None, queued: None, ..request }
    })?;
    // Without latencies no completion is missing.
    metadata.counts.unmatched = 0;
    snippets.pop();
    if snippets.is_empty() {
        return Err(Error::Request(format!(
            "derived: the load is not longer than one snippet of {length}; set a shorter snippet= or use a longer load"
        )));
    }
    // Stable: equally busy snippets stay in the order of time.
    snippets.sort_by_key(|snippet| std::cmp::Reverse(snippet.count));
    let own: Vec<Snippet> = snippets.into_iter().skip(output - 1).step_by(outputs).collect();
    let report = report(&own, length);
    let derived = Derived { requests, metadata, length, snippets: own, current: 0, next: 0 };
    Ok(Counted::with_metadata(derived, |metadata| {
        // Snippets are out of order: no single epoch fits.
        metadata.epoch_unix_ns = None;
        metadata.warning(report);
    }))
}

/// Most snippets that the warning lists, about 12 bytes each.
const MAX_LISTED: usize = 1000;

/// Rates and original start times of all snippets. One warning, because a file holds a limited number of them.
fn report(snippets: &[Snippet], length: Nanos) -> String {
    let iops = |snippet: &Snippet| human::rate(snippet.count as f64 / length.as_secs());
    let Some(last) = snippets.last() else { return "derived: no snippet is left for this output".into() };
    let mut report =
        format!("derived: {} snippets of {} s, as IOPS@SECOND:", human::count(snippets.len() as u64), length.as_secs());
    for snippet in &snippets[..snippets.len().min(MAX_LISTED)] {
        let from = Nanos(snippet.index.saturating_mul(length.0));
        // Writing to a string cannot fail.
        _ = write!(report, " {}@{}", iops(snippet), from.as_secs());
    }
    if snippets.len() > MAX_LISTED {
        _ = write!(report, " … down to {}", iops(last));
    }
    report
}

struct Derived {
    requests: Spool,
    metadata: Metadata,
    length: Nanos,
    snippets: Vec<Snippet>,
    current: usize,
    /// The next request within the current snippet.
    next: u64,
}

impl Source for Derived {
    fn next(&mut self) -> Result<Option<Request>> {
        let Some(mut snippet) = self.snippets.get(self.current) else { return Ok(None) };
        if self.next == snippet.count {
            (self.current, self.next) = (self.current + 1, 0);
            let Some(next) = self.snippets.get(self.current) else { return Ok(None) };
            snippet = next;
        }
        let mut request = self.requests.get(snippet.first + self.next)?;
        self.next += 1;
        let inside = request.at - Nanos(snippet.index.saturating_mul(self.length.0));
        request.at = Nanos(self.length.0.saturating_mul(self.current as i64)) + inside;
        Ok(Some(request))
    }

    fn upstream(&self) -> &Metadata {
        &self.metadata
    }

    fn has_all_devices(&self) -> bool {
        true
    }

    fn progress(&self) -> Option<f64> {
        Some(self.current as f64 / self.snippets.len().max(1) as f64)
    }
}
