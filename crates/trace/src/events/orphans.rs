//! Completions that belong to no request. A few requests are in flight when a trace begins; with more of them, events are
//! missing that no one counted, such as those of a CPU whose file was not read.

use std::collections::BTreeMap;

use crate::model::metadata::Metadata;
use crate::model::request::{DeviceId, Op};
use crate::model::units::Nanos;
use crate::text::human;

use super::Event;
use super::event::MAX_PENDING;

/// Counts completions without a request.
#[derive(Default)]
pub struct Orphans {
    /// Sectors in flight by position: issues below the level that the requests are taken from, such as those of a device
    /// whose driver clones requests. Their completions are no loss.
    issued: BTreeMap<(DeviceId, Op, u64), u64>,
    /// By device.
    completions: BTreeMap<DeviceId, u64>,
    first: Option<Nanos>,
    /// The time of the last completion without a request.
    last: Nanos,
    longest_latency: Nanos,
}

impl Orphans {
    /// Notes the time of the first event.
    pub fn begin(&mut self, at: Nanos) {
        self.first.get_or_insert(at);
    }

    /// Notes an issue that belongs to no request.
    pub fn issue(&mut self, event: &Event) {
        if self.issued.len() < MAX_PENDING {
            self.issued.insert((event.device, event.op, event.sector.0), event.sectors.0);
        }
    }

    /// Notes the latency of a request.
    pub fn latency(&mut self, latency: Nanos) {
        self.longest_latency = self.longest_latency.max(latency);
    }

    /// Counts a completion that belongs to no request.
    pub fn complete(&mut self, event: &Event) {
        // A second completion, after the flush that follows a write, has no length.
        if event.sectors.0 == 0 {
            return;
        }
        if let Some(sectors) = self.issued.remove(&(event.device, event.op, event.sector.0)) {
            if sectors > event.sectors.0 {
                let rest = event.sector.0 + event.sectors.0;
                self.issued.insert((event.device, event.op, rest), sectors - event.sectors.0);
            }
            return;
        }
        *self.completions.entry(event.device).or_default() += 1;
        self.last = event.at;
    }

    /// Adds the count, and what is probably missing. `is_told` are devices without events of the chosen action, which has a
    /// warning of its own.
    pub fn conclude(&mut self, is_told: impl Fn(DeviceId) -> bool, metadata: &mut Metadata) {
        let completions = std::mem::take(&mut self.completions);
        let count: u64 = completions.iter().filter(|&(&device, _)| !is_told(device)).map(|(_, count)| count).sum();
        if count == 0 {
            return;
        }
        metadata.counts.unmatched_completions += count;
        let began_before = self.last - self.first.unwrap_or_default() <= self.longest_latency;
        let why = if began_before {
            "they were issued before it began".to_owned()
        } else if metadata.counts.lost_events > 0 {
            "their issues are among the lost events".to_owned()
        } else {
            missing(metadata)
        };
        let (what, are) = (human::counted(count, "completion"), if count == 1 { "belongs" } else { "belong" });
        metadata.warning(format!("{what} {are} to no request of the trace: {why}"));
    }
}

/// What is probably missing from a trace of this format.
fn missing(metadata: &Metadata) -> String {
    match metadata.source.format.as_str() {
        "blktrace" => {
            let name = metadata.source.path.as_deref().unwrap_or_default();
            let stem = name.rsplit_once(".blktrace.").map_or("NAME", |(stem, _)| stem);
            format!("the file of a CPU is probably missing; a trace is all of {stem}.blktrace.*")
        }
        "blkparse" => "a file of a CPU was probably missing when blkparse read NAME.blktrace.*, or the events of their \
                       requests were filtered out"
            .to_owned(),
        _ => "the events of their requests were probably not recorded: were there all CPUs, and the tracepoints of issues \
              (block_rq_issue) or queued requests (block_bio_queue)?"
            .to_owned(),
    }
}
