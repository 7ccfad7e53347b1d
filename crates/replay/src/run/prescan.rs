//! Reads the window of the load once before the run: for the progress bar, for space on disk, for the size of buffers.

use std::sync::Arc;

use iosonar_pacing::Stop;
use iosonar_pacing::wait::Wait;
use iosonar_pacing::{Error, Result};
use iosonar_trace::transforms::{IsOver, until};
use iosonar_trace::{Device, Kind, Metadata, Nanos, Op, Reader, Request, Span, open_load, period};
use iosonar_workload::filament::{self, Runtime};

use crate::address::router::Fit;
use crate::config::options::Options;
use crate::config::plan::Plan;
use crate::dependencies::Dependencies;
use crate::issuer::Think;
use crate::pipeline::prefetch::PrefetchReader;
use crate::pipeline::prepare::raise_extent;
use crate::schedule::Window;
use crate::schedule::iterations::Iterations;
use crate::schedule::time_map::too_late;

/// Up to this many sectors, the longest request of any operation may stand for the longest transfer: no device splits a
/// request of this size, and its buffer is small.
const SMALL_TRANSFER: u64 = 256;

/// The mean of random numbers.
const MEAN: u64 = 1 << 63;

/// What is in the window of the load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prescan {
    /// Requests of one iteration.
    pub requests: u64,
    /// Requests of the whole load; `None` if neither its footer nor its end was read.
    pub of_load: Option<u64>,
    /// Reads among them.
    pub reads: u64,
    /// Writes among them.
    pub writes: u64,
    /// Flushes, discards and write-zeroes among them.
    pub others: u64,
    /// Range of times and positions.
    pub span: Span,
    /// Length of the longest read or write, in sectors. Other requests can be as long as the device, but move no data.
    pub longest_transfer: u64,
    /// The devices of the load, by index.
    pub devices: Vec<Device>,
    /// The highest end sector on each device; empty if the footer was enough and only the counts are known.
    pub device_extents: Vec<u64>,
}

impl Prescan {
    /// How long the run takes if it keeps the scheduled times, with `--perturb` until the mean deadline of the last request;
    /// `None` if unknown.
    pub fn duration(&self, options: &Options) -> Option<Nanos> {
        let pacing = &options.pacing;
        let load_time = Nanos(self.span.last_ns.saturating_sub(self.span.first_ns));
        let scheduled = (options.keeps_times() && !options.modes.loops).then(|| pacing.scheduled(load_time));
        let last = [scheduled, pacing.until()].into_iter().flatten().min()?;
        Some(last + pacing.delay(last, &mut || MEAN))
    }

    /// Refuses a load with times that the run cannot have.
    fn checked(self, options: &Options) -> Result<Self> {
        if options.pacing.until().is_none() && self.duration(options) == Some(Nanos::MAX) {
            return Err(too_late("the last request"));
        }
        Ok(self)
    }

    /// Mean requests per second of the run, if it keeps the scheduled times: infinite if several are due at once and no
    /// others; `None` if unknown.
    pub fn rate(&self, options: &Options) -> Option<f64> {
        let (duration, rows) = (self.duration(options)?, self.expected_rows(options));
        (duration > Nanos::ZERO || rows > 1).then(|| rows as f64 / duration.as_secs())
    }

    /// The most rows that the run can have; if it loops without an end, those of one iteration.
    pub fn expected_rows(&self, options: &Options) -> u64 {
        let (true, true, Some(until)) = (options.modes.loops, options.keeps_times(), options.pacing.until()) else {
            return self.requests;
        };
        let (first, last) = (Nanos(self.span.first_ns), Nanos(self.span.last_ns));
        let iteration = options.pacing.scheduled(period(self.requests, first, last));
        let iterations = (until.0 as f64 / iteration.0 as f64).ceil().max(1.0);
        (self.requests as f64 * iterations) as u64
    }
}

/// Opens the load and applies `--edit`. Without a load, the reader is empty. The reader ends when `stop` is set, even within a transform that would never return
/// another request.
pub fn open(options: &Options, stop: &Arc<Stop>) -> Result<Box<dyn Reader<Request>>> {
    let Some(load) = &options.load else {
        return Ok(Box::new(filament::open_load(Runtime::default(), Nanos::ZERO, Metadata::new(Kind::Load, "none"))));
    };
    let stop = Arc::clone(stop);
    let is_over: IsOver = Arc::new(move || stop.is_requested());
    let load = open_load(load)?;
    Ok(match &options.edit {
        Some(edit) => edit.apply_until(load, &is_over)?,
        None => until(load, &is_over),
    })
}

/// Reads the load in a thread of its own if the loop is inline and has deadlines, so that it does not wait while a part of the
/// load is decompressed.
pub fn read_ahead(plan: &Plan, load: Box<dyn Reader<Request>>) -> Result<Box<dyn Reader<Request>>> {
    Ok(if plan.waiting.wait == Wait::Inline && plan.options.keeps_times() {
        Box::new(PrefetchReader::start(load)?)
    } else {
        load
    })
}

/// Learns what the requests of the window wait for, if the run needs that.
pub fn dependencies(options: &Options, stop: &Arc<Stop>) -> Result<Option<Dependencies>> {
    if options.modes.closed != Some(Think::Inferred) {
        return Ok(None);
    }
    Dependencies::learn(&mut Iterations::new(open(options, stop)?, options.time.window, None)).map(Some)
}

/// Counts the requests in the window: from the load's footer if that has everything, else by reading the load. `None` for a
/// pipe, which can be read only once, and without a load.
pub fn scan(options: &Options, stop: &Arc<Stop>) -> Result<Option<Prescan>> {
    let Some(load) = options.load.as_ref().filter(|_| !options.is_piped()) else { return Ok(None) };
    let window = options.time.window;
    let mut reader = open(options, stop)?;
    let needs_device_extents = matches!(options.target.rules.fit, Fit::Scale | Fit::Reject);
    let until = options.pacing.until().filter(|_| options.keeps_times());
    let is_beyond = |since: Nanos| until.is_some_and(|until| options.pacing.scheduled(since) >= until);
    let metadata = reader.metadata();
    let is_whole = window == Window::default() && !is_beyond(duration(metadata));
    // A footer has the length of the longest request, but not its operation.
    let is_transfer_known = metadata.counts.others == 0 || metadata.span.max_sectors <= SMALL_TRANSFER;
    if reader.has_totals() && is_whole && !needs_device_extents && is_transfer_known {
        let requests = Some(metadata.counts.requests);
        return prescan(metadata, metadata, requests, metadata.span.max_sectors, Vec::new()).checked(options).map(Some);
    }
    let mut of_load = reader.has_totals().then_some(metadata.counts.requests);
    let (mut longest_transfer, mut read) = (0, 0);
    let mut counted = Metadata::new(Kind::Load, "window");
    let mut device_extents = Vec::new();
    loop {
        let Some(request) = reader.next()? else {
            of_load = Some(read);
            break;
        };
        if request.at >= window.end {
            break;
        }
        read += 1;
        if !window.is_before_start(request.at) {
            let first = if counted.counts.requests == 0 { request.at } else { Nanos(counted.span.first_ns) };
            if is_beyond(request.at - first) {
                break;
            }
            counted.count_request(&request);
            if matches!(request.op, Op::Read | Op::Write) {
                longest_transfer = request.sectors.0.max(longest_transfer);
            }
            raise_extent(&mut device_extents, request.device, request.end());
        }
    }
    if stop.is_requested() {
        return Err(Error::Stopped);
    }
    if counted.counts.requests == 0 {
        return Err(Error::Options(format!(
            "{}: no request to replay{}",
            load.display(),
            match (window == Window::default(), &options.edit) {
                (true, None) => "",
                (true, Some(_)) => ": --edit left none",
                (false, _) => " in that window; `iosonar info` shows the length of the load",
            }
        )));
    }
    prescan(&counted, reader.metadata(), of_load, longest_transfer, device_extents).checked(options).map(Some)
}

fn prescan(
    window: &Metadata,
    load: &Metadata,
    of_load: Option<u64>,
    longest_transfer: u64,
    device_extents: Vec<u64>,
) -> Prescan {
    let counts = &window.counts;
    Prescan {
        requests: counts.requests,
        of_load,
        reads: counts.reads,
        writes: counts.writes,
        others: counts.others,
        span: window.span,
        longest_transfer,
        devices: load.devices.clone(),
        device_extents,
    }
}

/// Time from the first request to the last.
fn duration(metadata: &Metadata) -> Nanos {
    Nanos(metadata.span.last_ns) - Nanos(metadata.span.first_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_duration_follows_from_the_options() {
        let span = Span { first_ns: 1_000_000_000, last_ns: 5_000_000_000, ..Span::default() };
        let prescan = Prescan { requests: 10, span, ..Prescan::default() };
        let duration = |options: &str| {
            let options = Options::of(&format!("a.load -t x -o a.replay.gz {options}"));
            prescan.duration(&options).map(|duration| duration.0 / 1_000_000)
        };
        assert_eq!(duration(""), Some(4000));
        assert_eq!(duration("--speedup 2"), Some(2000));
        for (options, expected) in
            [("--speedup 1e-9", true), ("--speedup 1e-10", false), ("--speedup 1e-10 --for 1", true)]
        {
            let options = Options::of(&format!("a.load -t x -o a.replay.gz {options}"));
            assert_eq!(prescan.clone().checked(&options).is_ok(), expected);
        }
        assert_eq!(duration("--for 3"), Some(3000));
        assert_eq!(duration("--perturb delay=7ms"), Some(4007));
        assert_eq!(duration("--for 3 --perturb quantize=1.1s"), Some(3300));
        assert_eq!((duration("--asap"), duration("--loop"), duration("--loop --for 9")), (None, None, Some(9000)));
    }

    #[test]
    fn requests_that_are_due_at_once_have_the_highest_rate() {
        let rate = |requests, last_ns, words: &str| {
            let options = Options::of(&format!("a.load -t x -o a.replay.gz {words}"));
            Prescan { requests, span: Span { last_ns, ..Span::default() }, ..Prescan::default() }.rate(&options)
        };
        assert_eq!(
            [rate(10, 2_000_000_000, ""), rate(10, 0, ""), rate(1, 0, "")],
            [Some(5.0), Some(f64::INFINITY), None]
        );
        assert_eq!(rate(10, 2_000_000_000, "--asap"), None);
    }
}
