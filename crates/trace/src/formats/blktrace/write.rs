//! Writes a single file for blkparse, btt and btreplay: version 7, in this machine's byte order, as if all events were from
//! one CPU.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;

use crate::error::Result;
use crate::events::Action;
use crate::formats::support::kernel_numbers;
use crate::formats::support::losses::{Losses, Property, lost_properties, pieces};
use crate::formats::support::numbering::Names;
use crate::formats::support::request_events::RequestEvents;
use crate::io::output::Output;
use crate::io::stream::{ConversionLoss, Writer};
use crate::model::metadata::Metadata;
use crate::model::request::{Comm, Op, Request};
use crate::text::human;

use super::numbers::{FLAGS, MAGIC, MINOR_BITS, category, event, notification};

/// Creates a load.
pub fn create_load(output: Output, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    let generate = |number: usize| DeviceNumber(259 << MINOR_BITS | number as u32);
    Ok(Box::new(BlktraceWriter {
        output,
        devices: Names::new(device_number, generate, &known.devices),
        epoch: known.epoch_unix_ns,
        has_epoch: false,
        unknown_processes: 0,
        sequences: HashMap::new(),
        pending: RequestEvents::new(known.request_time),
        named: HashMap::new(),
        losses: Losses::default(),
    }))
}

/// Major and minor number, packed as in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct DeviceNumber(u32);

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.0 >> MINOR_BITS, self.0 & ((1 << MINOR_BITS) - 1))
    }
}

fn device_number(name: &str) -> Option<DeviceNumber> {
    let (major, minor) = match name.split_once(',') {
        Some((major, minor)) => (major.parse().ok()?, minor.parse().ok()?),
        None => kernel_numbers::number_of(name)?,
    };
    (major < 1 << (32 - MINOR_BITS) && minor < 1 << MINOR_BITS).then_some(DeviceNumber(major << MINOR_BITS | minor))
}

struct BlktraceWriter {
    output: Output,
    devices: Names<DeviceNumber>,
    /// The wall-clock time of the load's zero, which the first record has to state; `None` once that is done.
    epoch: Option<i64>,
    /// Whether the epoch was written.
    has_epoch: bool,
    /// Requests without a pid.
    unknown_processes: u64,
    /// The last sequence number of each device.
    sequences: HashMap<u32, u32>,
    pending: RequestEvents,
    /// The last name written for each process. A name is written when it is first seen, and when it changes.
    named: HashMap<u32, Comm>,
    losses: Losses,
}

impl BlktraceWriter {
    #[expect(clippy::too_many_arguments, reason = "these are the record's fields")]
    fn record(
        &mut self,
        sequence: u32,
        at: u64,
        sector: u64,
        bytes: u32,
        categories: u64,
        number: u16,
        pid: u32,
        device: u32,
        pdu: &[u8],
    ) -> Result<()> {
        let action = (categories << category::SHIFT) as u32 | u32::from(number);
        let mut record = Vec::with_capacity(48 + pdu.len());
        record.extend((MAGIC | 7).to_ne_bytes());
        record.extend(sequence.to_ne_bytes());
        record.extend(at.to_ne_bytes());
        record.extend(sector.to_ne_bytes());
        for field in [bytes, action, pid, device, 0] {
            record.extend(field.to_ne_bytes());
        }
        record.extend(0_u16.to_ne_bytes());
        record.extend((pdu.len() as u16).to_ne_bytes());
        record.extend(pdu);
        self.output.write_all(&record).map_err(|e| self.output.error(e))
    }

    /// Writes the wall-clock time of the trace's zero, if known. Called after the first request, which determines the shift
    /// of the times.
    fn write_epoch(&mut self) -> Result<()> {
        let epoch = self.epoch.take().and_then(|epoch| epoch.checked_sub(self.losses.shift().0));
        if let Some(epoch) = epoch.and_then(|ns| u64::try_from(ns).ok()) {
            // The record holds seconds in 32 bits, until 2106.
            if let Ok(secs) = u32::try_from(epoch / 1_000_000_000) {
                let pdu = [secs.to_ne_bytes(), ((epoch % 1_000_000_000) as u32).to_ne_bytes()].concat();
                self.record(0, 0, 0, 0, category::NOTIFY, notification::TIMESTAMP, 0, 0, &pdu)?;
                self.has_epoch = true;
            }
        }
        Ok(())
    }

    fn put(&mut self, at: u64, action: Action, request: &Request) -> Result<()> {
        let pid = request.pid.unwrap_or(0);
        if request.pid.is_some() && self.named.get(&pid) != Some(&request.comm) {
            self.named.insert(pid, request.comm);
            self.record(0, at, 0, 0, category::NOTIFY, notification::PROCESS, pid, 0, &request.comm.0)?;
        }
        let (number, of_action) = match action {
            Action::Complete => (event::COMPLETE, category::COMPLETE),
            Action::Issue => (event::ISSUE, category::ISSUE),
            _ => (event::QUEUE, category::QUEUE),
        };
        let device = self.devices.used(request.device.0.into()).0;
        let categories = of_action | categories(request);
        // A record has 32 bits for the length in bytes.
        for (sector, sectors) in pieces(request) {
            let sequence = self.sequences.entry(device).or_default();
            *sequence = sequence.wrapping_add(1);
            let sequence = *sequence;
            self.record(sequence, at, sector.0, sectors.bytes() as u32, categories, number, pid, device, &[])?;
        }
        Ok(())
    }
}

fn categories(request: &Request) -> u64 {
    let mut categories = match request.op {
        Op::Read => category::READ,
        Op::Write => category::WRITE,
        Op::Flush => category::WRITE | category::FLUSH,
        Op::Discard => category::WRITE | category::DISCARD,
        Op::WriteZeroes => category::WRITE,
    };
    for (bit, flag) in FLAGS {
        if request.flags.has(flag) {
            categories |= bit;
        }
    }
    categories
}

impl Writer<Request> for BlktraceWriter {
    fn write(&mut self, request: &Request) -> Result<()> {
        let Some(at) = self.losses.time(request.at) else { return Ok(()) };
        self.write_epoch()?;
        // A record of a flush with a length is that of a write.
        if request.op == Op::WriteZeroes || (request.op == Op::Flush && request.sectors.0 > 0) {
            self.losses.unsupported_ops += 1;
            return Ok(());
        }
        if !self.losses.fits(request) {
            return Ok(());
        }
        self.unknown_processes += u64::from(request.pid.is_none());
        if request.pid.is_none() && request.comm != Comm::default() {
            // Names of processes are written with their pid.
            self.losses.process(request);
        }
        self.losses.length(request);
        self.pending.push(at, request);
        while let Some((at, action, request)) = self.pending.pop_until(at) {
            self.put(at, action, &request)?;
        }
        Ok(())
    }

    fn learn(&mut self, known: &Metadata) {
        self.devices.learn(&known.devices);
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.output.checkpoint(Vec::new())
    }

    fn finish(mut self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        self.write_epoch()?;
        while let Some((at, action, request)) = self.pending.pop_until(u64::MAX) {
            self.put(at, action, &request)?;
        }
        let mut loss = self.losses.conversion_loss(&self.output, "blktrace")?;
        let unsupported = [Property::Preamble, Property::Sizes, Property::Losses, Property::Epoch];
        let unsupported = if self.has_epoch { &unsupported[..3] } else { &unsupported[..] };
        loss.warnings.extend(lost_properties("blktrace", unsupported, metadata));
        loss.warnings.extend(self.pending.warnings("blktrace"));
        let without_queue = self.pending.without_queue();
        if without_queue > 0 {
            let what = "requests have no event Q, because their queueing time is unknown: btrecord and btreplay leave them out";
            loss.warnings.push(human::agreed(without_queue, what));
        }
        loss.warnings.extend(self.devices.describe_all("the format blktrace identifies devices by unique numbers"));
        if self.unknown_processes > 0 {
            let what = human::agreed(self.unknown_processes, "requests of unknown processes have pid 0");
            loss.warnings.push(format!("the format blktrace needs a pid: {what}"));
        }
        self.output.finish()?;
        Ok(loss)
    }
}
