//! The busiest parts first: the derived loads of the blkreplay manual, chapter 5.1.2.

use std::fmt::Write;

use crate::error::{Error, Result};
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::model::units::Nanos;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use crate::text::human;

use super::counted::{Counted, Source};
use super::held::Held;
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "derived",
        about: "Cuts the load into snippets of equal time and sorts them, the busiest first",
        details: "So an overload stands at the beginning, and what follows tells how a storage recovers. Snippets are cut\n\
                  from time zero on. The one in which the load ends is left out, as nobody knows how much of it there is;\n\
                  those without any request vanish. The snippets are dealt to several outputs in turn, of which this is one;\n\
                  the file says in a notice how busy each of its snippets is (the first 1000) and when it began: IOPS@SECOND,\n\
                  in their new order. Latencies, queueing times and the date are left out. Several loads are put one behind the\n\
                  other by `append` before.",
        params: &[
            ParamSpec {
                name: "snippet",
                takes: ParamType::Time,
                unset: ParamDefault::Default("300"),
                help: "how long a snippet is",
            },
            ParamSpec {
                name: "outputs",
                takes: ParamType::Count,
                unset: ParamDefault::Default("1"),
                help: "among how many to deal",
            },
            ParamSpec {
                name: "output",
                takes: ParamType::Count,
                unset: ParamDefault::Default("1"),
                help: "which of these, from 1",
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
        return Err(format!("output must be from 1 to {outputs}, as outputs={outputs}"));
    }
    Ok(Box::new(move |rows| apply(rows, length, outputs as usize, output as usize)))
}

/// Requests of an equal span of time, by their numbers.
struct Snippet {
    /// Which span, counted from time zero.
    index: i64,
    first: u64,
    count: u64,
}

fn apply(rows: Rows, length: Nanos, outputs: usize, output: usize) -> Result<Rows> {
    let mut snippets: Vec<Snippet> = Vec::new();
    let (requests, mut metadata) = Held::of(rows, |number, request| {
        let index = request.at.0.div_euclid(length.0);
        match snippets.last_mut() {
            Some(last) if last.index == index => last.count += 1,
            _ => snippets.push(Snippet { index, first: number, count: 1 }),
        }
        Request { latency: None, queued: None, ..request }
    })?;
    // Completions are no longer told, and so none is missing.
    metadata.counts.unmatched = 0;
    snippets.pop();
    if snippets.is_empty() {
        return Err(Error::Request(format!(
            "derived: the load does not reach beyond one snippet of {length}; set a shorter one (snippet=), or a longer load"
        )));
    }
    // Stable: snippets that are as busy as others stay in the order of time.
    snippets.sort_by_key(|snippet| std::cmp::Reverse(snippet.count));
    let own: Vec<Snippet> = snippets.into_iter().skip(output - 1).step_by(outputs).collect();
    let report = report(&own, length);
    let derived = Derived { requests, metadata, length, snippets: own, current: 0, next: 0 };
    Ok(Counted::with_metadata(derived, |metadata| {
        // Each snippet has a time of its own now.
        metadata.epoch_unix_ns = None;
        metadata.notice(report);
    }))
}

/// Snippets that the file tells of: some 12 bytes for each.
const MOST_TOLD: usize = 1000;

/// How busy the snippets are, and when they began: all in one notice, of which a file holds so many only.
fn report(snippets: &[Snippet], length: Nanos) -> String {
    let iops = |snippet: &Snippet| human::rate(snippet.count as f64 / length.as_secs());
    let Some(last) = snippets.last() else { return "derived: no snippet is left for this output".into() };
    let mut report =
        format!("derived: {} snippets of {} s, as IOPS@SECOND:", human::count(snippets.len() as u64), length.as_secs());
    for snippet in &snippets[..snippets.len().min(MOST_TOLD)] {
        let from = Nanos(snippet.index.saturating_mul(length.0));
        // Nothing can fail that is written to memory.
        _ = write!(report, " {}@{}", iops(snippet), from.as_secs());
    }
    if snippets.len() > MOST_TOLD {
        _ = write!(report, " … down to {}", iops(last));
    }
    report
}

struct Derived {
    requests: Held,
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
