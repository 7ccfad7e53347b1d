//! What a load's window holds, counted before the run: for progress, for room on the disk, for the size of buffers.

use std::sync::Arc;

use iosonar_trace::transforms::{IsOver, until};
use iosonar_trace::{Device, Kind, Metadata, Nanos, Op, Reader, Request, Span, open_load};

use crate::address::placement::Fit;
use crate::config::issuing::Wait;
use crate::config::options::Options;
use crate::error::{Error, Result};
use crate::issuer::Stop;
use crate::pipeline::prefetch::PrefetchReader;
use crate::pipeline::prepare::raise_extent;
use crate::schedule::Window;
use crate::schedule::iterations::period;

/// What is known of the load's window before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prescan {
    /// Requests of one iteration.
    pub requests: u64,
    /// Of these, reads.
    pub reads: u64,
    /// Of these, writes.
    pub writes: u64,
    /// Of these, flushes, discards and write-zeroes.
    pub others: u64,
    /// Times and positions.
    pub span: Span,
    /// How long the longest read or write is, in sectors. Discards may be as long as the device; they move no data.
    pub longest_moved: u64,
    /// The load's devices.
    pub devices: Vec<Device>,
    /// The first sector behind the highest request of each device; empty where nobody asked for it.
    pub device_extents: Vec<u64>,
}

impl Prescan {
    /// How long the run takes if it keeps its times; `None` if unknown.
    pub fn duration(&self, options: &Options) -> Option<Nanos> {
        let natural = self.span.last_ns - self.span.first_ns;
        let natural = (options.keeps_times() && !options.modes.again)
            .then(|| Nanos((natural as f64 / options.time.speedup) as i64));
        match (natural, options.modes.run_for) {
            (Some(natural), Some(until)) => Some(natural.min(until)),
            (natural, until) => natural.or(until),
        }
    }

    /// How many requests a second the run has on average, if it keeps its times; `None` if unknown.
    pub fn rate(&self, options: &Options) -> Option<f64> {
        let takes = self.duration(options).filter(|&takes| takes > Nanos::ZERO)?;
        Some(self.expected(options) as f64 / takes.as_secs())
    }

    /// How many rows the run can have at most, where its end is known; else those of an iteration.
    pub fn expected(&self, options: &Options) -> u64 {
        let (true, true, Some(until)) = (options.modes.again, options.keeps_times(), options.modes.run_for) else {
            return self.requests;
        };
        let (first, last) = (Nanos(self.span.first_ns), Nanos(self.span.last_ns));
        let iteration = period(self.requests, first, last).0 as f64 / options.time.speedup;
        let begun = (until.0 as f64 / iteration).ceil().max(1.0);
        (self.requests as f64 * begun) as u64
    }
}

/// The load as it is replayed; at its end when a stop was ordered, even where it would never come to anything.
pub fn open(options: &Options, stop: &Arc<Stop>) -> Result<Box<dyn Reader<Request>>> {
    let stop = Arc::clone(stop);
    let is_over: IsOver = Arc::new(move || stop.is_requested());
    let load = open_load(&options.load)?;
    Ok(match &options.edit {
        Some(edit) => edit.apply_until(load, &is_over)?,
        None => until(load, &is_over),
    })
}

/// The same for the run itself: a loop with deadlines must not wait for a piece of the load to be unpacked.
pub fn ahead(options: &Options, load: Box<dyn Reader<Request>>) -> Result<Box<dyn Reader<Request>>> {
    Ok(if options.wait() == Wait::Inline && options.keeps_times() {
        Box::new(PrefetchReader::start(load)?)
    } else {
        load
    })
}

/// Counts the requests in the window: from the footer if the file has totals, else by reading it. `None` for a pipe.
pub fn scan(options: &Options, stop: &Arc<Stop>) -> Result<Option<Prescan>> {
    let (load, window) = (&options.load, options.time.window);
    if options.is_piped() {
        return Ok(None);
    }
    let mut reader = open(options, stop)?;
    let needs_reaches = matches!(options.target.rules.fit, Fit::Scale | Fit::Reject);
    let ends_early = options
        .modes
        .run_for
        .filter(|_| options.keeps_times())
        .map(|until| Nanos((until.0 as f64 * options.time.speedup) as i64));
    let is_complete = window == Window::default() && ends_early.is_none_or(|end| end >= length(reader.metadata()));
    let known = reader.metadata();
    // A footer tells how long the longest request is, but not what it does.
    let is_longest_clear = known.counts.others == 0 || known.span.max_sectors <= SHORT;
    if reader.has_totals() && is_complete && !needs_reaches && is_longest_clear {
        return Ok(Some(of(known, known, known.span.max_sectors, Vec::new())));
    }
    let mut longest_moved = 0;
    let mut inside = Metadata::new(Kind::Load, "window");
    let mut device_extents = Vec::new();
    while let Some(request) = reader.next()? {
        if request.at >= window.end {
            break;
        }
        if !window.is_before_start(request.at) {
            let first = if inside.counts.requests == 0 { request.at } else { Nanos(inside.span.first_ns) };
            if ends_early.is_some_and(|end| request.at - first >= end) {
                break;
            }
            inside.count_request(&request);
            if matches!(request.op, Op::Read | Op::Write) {
                longest_moved = request.sectors.0.max(longest_moved);
            }
            raise_extent(&mut device_extents, request.device, request.end());
        }
    }
    if stop.is_requested() {
        return Err(Error::Stopped);
    }
    if inside.counts.requests == 0 {
        return Err(Error::Options(format!(
            "{}: no request to replay{}",
            load.display(),
            match (window == Window::default(), &options.edit) {
                (true, None) => "",
                (true, Some(_)) => " is left by --edit",
                (false, _) => " in that window; `iosonar info` tells how long the load is",
            }
        )));
    }
    Ok(Some(of(&inside, reader.metadata(), longest_moved, device_extents)))
}

/// Sectors up to which it makes no difference which kind of request is so long: no device splits it, no buffer is large.
const SHORT: u64 = 256;

fn of(window: &Metadata, load: &Metadata, longest_moved: u64, device_extents: Vec<u64>) -> Prescan {
    let counts = &window.counts;
    Prescan {
        requests: counts.requests,
        reads: counts.reads,
        writes: counts.writes,
        others: counts.others,
        span: window.span,
        longest_moved,
        devices: load.devices.clone(),
        device_extents,
    }
}

fn length(known: &Metadata) -> Nanos {
    Nanos(known.span.last_ns - known.span.first_ns)
}
