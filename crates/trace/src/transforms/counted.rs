//! What all transforms share: the counting of what they hand out.

use crate::error::{Error, Result};
use crate::io::stream::Reader;
use crate::model::metadata::{Counts, Device, Metadata, Span};
use crate::model::request::Request;
use crate::model::units::{MAX_END_SECTOR, Sector, Sectors};

use super::Rows;

/// Where changed requests come from.
pub trait Source: Send {
    /// The next one.
    fn next(&mut self) -> Result<Option<Request>>;

    /// What is known of the load that they are made from. Devices that it learns of on its way stand behind those
    /// that were known at the beginning, before the first request on them is handed out.
    fn upstream(&self) -> &Metadata;

    /// Whether `upstream` knows all devices that will ever come.
    fn has_all_devices(&self) -> bool {
        false
    }

    /// How far it is through that load.
    fn progress(&self) -> Option<f64> {
        None
    }

    /// Whether requests of that load were left out.
    fn has_dropped(&self) -> bool {
        false
    }
}

/// A source as a reader: its rows are counted anew, the losses of the load that they are made from stay.
pub struct Counted<S> {
    source: S,
    metadata: Metadata,
    /// Of the requests, those whose completion is known.
    completed: u64,
    /// How many notices of the load that they are made from were taken over.
    notices: usize,
    /// How many of its devices were.
    devices: usize,
    /// What becomes of a device that appears late.
    change_device: ChangeDevice,
}

type ChangeDevice = Box<dyn Fn(&mut Device) + Send>;

impl<S: Source + 'static> Counted<S> {
    /// On the same devices as before.
    pub fn on_same_devices(source: S) -> Rows {
        Self::on_changed_devices(source, |_| {})
    }

    /// On the same devices as before, of which requests may now go beyond the end.
    pub fn on_devices_of_any_size(source: S) -> Rows {
        Self::on_changed_devices(source, |device| device.sectors = None)
    }

    /// On the devices as `change` makes them, also those that appear late.
    pub fn on_changed_devices(source: S, change: impl Fn(&mut Device) + Send + 'static) -> Rows {
        let mut counted = Self::new(source);
        counted.metadata.devices.iter_mut().for_each(&change);
        Box::new(Self { change_device: Box::new(change), ..counted })
    }

    /// With what is known of the load changed by `change`. Devices that appear later are taken as they are.
    pub fn with_metadata(source: S, change: impl FnOnce(&mut Metadata)) -> Rows {
        let mut counted = Self::new(source);
        change(&mut counted.metadata);
        Box::new(counted)
    }

    fn new(source: S) -> Self {
        let mut metadata = source.upstream().clone();
        metadata.counts = Counts { requests: 0, reads: 0, writes: 0, others: 0, ..metadata.counts };
        metadata.span = Span::default();
        let (notices, devices) = (metadata.notices.len(), metadata.devices.len());
        Self { source, metadata, completed: 0, notices, devices, change_device: Box::new(|_| {}) }
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

    /// With each request, not only at the end: whoever has seen enough never asks for that.
    fn take_over_losses(&mut self) {
        let upstream = self.source.upstream();
        let Counts { requests, reads, writes, others, .. } = self.metadata.counts;
        self.metadata.counts = Counts { requests, reads, writes, others, ..upstream.counts.clone() };
        if self.source.has_dropped() {
            self.metadata.counts.unmatched = self.unmatched(upstream.counts.unmatched);
        }
        self.metadata.complete = upstream.complete;
        for notice in upstream.notices.iter().skip(self.notices) {
            self.metadata.notice(notice.clone());
        }
        self.notices = upstream.notices.len();
    }

    /// How many of the requests that are left have no completion, of so many before. Where none has one that can't be
    /// told: the load may have lost its times since it was recorded.
    fn unmatched(&self, before: u64) -> u64 {
        let without = self.metadata.counts.requests - self.completed;
        if self.completed == 0 { 0 } else { before.min(without) }
    }
}

/// Takes over what is known by now of the load that `metadata` is a copy of, but for its devices.
pub fn follow(metadata: &mut Metadata, known: &Metadata) {
    metadata.counts.clone_from(&known.counts);
    (metadata.span, metadata.complete) = (known.span, known.complete);
    metadata.notices.extend_from_slice(&known.notices[metadata.notices.len()..]);
}

/// What becomes of one request.
pub enum Step {
    /// It goes on like this.
    Emit(Request),
    /// It is left out.
    Skip,
    /// It is left out, and so is everything behind it.
    End,
    /// It can't go on: this setting of this transform leads it out of what a load can hold.
    Outside(&'static str, &'static str),
}

/// The place, if it is one that the reader of a table accepts.
pub fn place(sector: Option<u64>, sectors: Sectors) -> Option<Sector> {
    let sector = sector?;
    (sector.checked_add(sectors.0)? <= MAX_END_SECTOR).then_some(Sector(sector))
}

/// What to say of a request that would leave what a load can hold; the first has the number 1.
pub fn outside(transform: &str, setting: &str, number: u64) -> Error {
    Error::Request(format!(
        "{transform}: {setting} leads request {number} out of what a load can hold: sectors before {MAX_END_SECTOR}, and \
         times up to {} years from its zero",
        i64::MAX / 1_000_000_000 / 86_400 / 365
    ))
}

/// A source that looks at one request after the other.
pub struct PerRow<F> {
    rows: Rows,
    step: F,
    /// How many requests it looked at.
    seen: u64,
    dropped: bool,
    ended: bool,
}

impl<F: FnMut(Request) -> Step + Send> PerRow<F> {
    /// Does this to each request.
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
