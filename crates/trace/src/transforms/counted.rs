//! Metadata of transformed loads: counts of their requests, and the losses of their input.

use crate::error::{Error, Result};
use crate::io::stream::Reader;
use crate::model::metadata::{Counts, Device, Metadata, Span};
use crate::model::request::Request;
use crate::model::units::{MAX_END_SECTOR, Sector, Sectors};

use super::Rows;

/// A source of transformed requests.
pub trait Source: Send {
    /// The next request.
    fn next(&mut self) -> Result<Option<Request>>;

    /// The metadata of the input. A device that appears late is appended before the first request on it is returned.
    fn upstream(&self) -> &Metadata;

    /// Whether `upstream` already has all devices.
    fn has_all_devices(&self) -> bool {
        false
    }

    /// The share of the input that was read.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// Whether requests were dropped.
    fn has_dropped(&self) -> bool {
        false
    }
}

/// Makes a reader of a source: counts its rows, and keeps the losses of its input.
pub struct Counted<S> {
    source: S,
    metadata: Metadata,
    /// Requests whose completion is known.
    completed: u64,
    /// Number of warnings copied from the input.
    warnings: usize,
    /// Number of devices copied from the input.
    devices: usize,
    /// Applied to devices that appear late.
    change_device: ChangeDevice,
}

type ChangeDevice = Box<dyn Fn(&mut Device) + Send>;

impl<S: Source + 'static> Counted<S> {
    /// Keeps the devices.
    pub fn on_same_devices(source: S) -> Rows {
        Self::on_changed_devices(source, |_| {})
    }

    /// Keeps the devices without their sizes, because requests may now exceed these.
    pub fn on_devices_of_any_size(source: S) -> Rows {
        Self::on_changed_devices(source, |device| device.sectors = None)
    }

    /// Applies `change` to all devices, also to those that appear late.
    pub fn on_changed_devices(source: S, change: impl Fn(&mut Device) + Send + 'static) -> Rows {
        let mut counted = Self::new(source);
        counted.metadata.devices.iter_mut().for_each(&change);
        Box::new(Self { change_device: Box::new(change), ..counted })
    }

    /// Applies `change` to the metadata. Devices that appear later stay as they are.
    pub fn with_metadata(source: S, change: impl FnOnce(&mut Metadata)) -> Rows {
        let mut counted = Self::new(source);
        change(&mut counted.metadata);
        Box::new(counted)
    }

    fn new(source: S) -> Self {
        let mut metadata = source.upstream().clone();
        metadata.counts = Counts { requests: 0, reads: 0, writes: 0, others: 0, ..metadata.counts };
        metadata.span = Span::default();
        let (warnings, devices) = (metadata.warnings.len(), metadata.devices.len());
        Self { source, metadata, completed: 0, warnings, devices, change_device: Box::new(|_| {}) }
    }
}

impl<S: Source> Reader<Request> for Counted<S> {
    fn next(&mut self) -> Result<Option<Request>> {
        let next = self.source.next()?;
        if self.source.upstream().devices.len() > self.devices {
            self.take_over_devices();
        }
        if let Some(request) = &next {
            self.metadata.count_request(request);
            self.completed += u64::from(request.latency.is_some());
        }
        self.take_over_losses();
        Ok(next)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }

    fn has_all_devices(&self) -> bool {
        self.source.has_all_devices()
    }
}

impl<S: Source> Counted<S> {
    fn take_over_devices(&mut self) {
        let upstream = &self.source.upstream().devices;
        for device in &upstream[self.devices..] {
            let mut device = device.clone();
            (self.change_device)(&mut device);
            self.metadata.devices.push(device);
        }
        self.devices = upstream.len();
    }

    /// Called for each request, because a consumer may stop before the end.
    fn take_over_losses(&mut self) {
        let upstream = self.source.upstream();
        let Counts { requests, reads, writes, others, .. } = self.metadata.counts;
        self.metadata.counts = Counts { requests, reads, writes, others, ..upstream.counts.clone() };
        if self.source.has_dropped() {
            self.metadata.counts.unmatched = self.unmatched(upstream.counts.unmatched);
        }
        self.metadata.complete = upstream.complete;
        for warning in upstream.warnings.iter().skip(self.warnings) {
            self.metadata.warning(warning.clone());
        }
        self.warnings = upstream.warnings.len();
    }

    /// How many of the remaining requests lack a completion, of `before` in the input. 0 if none has one, because then the
    /// latencies may have been dropped after the recording.
    fn unmatched(&self, before: u64) -> u64 {
        let without = self.metadata.counts.requests - self.completed;
        if self.completed == 0 { 0 } else { before.min(without) }
    }
}

/// What to do with a request.
pub enum Step {
    /// Pass it on.
    Emit(Request),
    /// Drop it.
    Skip,
    /// Drop it and everything after it.
    End,
    /// Fail: this transform and setting move it out of the range of a load.
    Outside(&'static str, &'static str),
}

/// The position, if a request of that length at it is within [`MAX_END_SECTOR`].
pub fn place(sector: Option<u64>, sectors: Sectors) -> Option<Sector> {
    let sector = sector?;
    (sector.checked_add(sectors.0)? <= MAX_END_SECTOR).then_some(Sector(sector))
}

/// The error for a request that is moved out of range; `number` counts from 1.
pub fn outside(transform: &str, setting: &str, number: u64) -> Error {
    Error::Request(format!(
        "{transform}: {setting} moves request {number} out of range: a load holds sectors up to {MAX_END_SECTOR}, and \
         times within {} years of its zero",
        i64::MAX / 1_000_000_000 / 86_400 / 365
    ))
}

/// A source that handles one request at a time.
pub struct PerRow<F> {
    rows: Rows,
    step: F,
    /// Requests read.
    seen: u64,
    dropped: bool,
    ended: bool,
}

impl<F: FnMut(Request) -> Step + Send> PerRow<F> {
    /// Applies `step` to each request.
    pub fn new(rows: Rows, step: F) -> Self {
        Self { rows, step, seen: 0, dropped: false, ended: false }
    }
}

impl<F: FnMut(Request) -> Step + Send> Source for PerRow<F> {
    fn next(&mut self) -> Result<Option<Request>> {
        while !self.ended {
            let Some(request) = self.rows.next()? else { return Ok(None) };
            self.seen += 1;
            match (self.step)(request) {
                Step::Emit(request) => return Ok(Some(request)),
                Step::Skip => self.dropped = true,
                Step::End => (self.dropped, self.ended) = (true, true),
                Step::Outside(transform, setting) => return Err(outside(transform, setting, self.seen)),
            }
        }
        Ok(None)
    }

    fn upstream(&self) -> &Metadata {
        self.rows.metadata()
    }

    fn has_all_devices(&self) -> bool {
        self.rows.has_all_devices()
    }

    fn has_dropped(&self) -> bool {
        self.dropped
    }

    fn progress(&self) -> Option<f64> {
        self.rows.progress()
    }
}
