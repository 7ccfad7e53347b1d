//! The tracks of a trace: one for each device, with a slot below it for each request in flight at the same time.
//!
//! Field numbers are those of `protos/perfetto/trace` in Perfetto's repository.

use std::collections::BTreeSet;

use super::protobuf::Message;
use crate::error::Result;
use crate::io::output::Output;
use crate::model::metadata::Device;
use crate::model::request::Op;

/// What a request says about itself, in the order of the numbers of their names in the trace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arg {
    Request,
    Iteration,
    OffsetBytes,
    Bytes,
    Rwbs,
    Pid,
    Process,
    QueuedNs,
    ScheduledNs,
    DelayNs,
    DelayReason,
    PushedBack,
    InFlight,
    Waiting,
    Outcome,
    Errno,
    Stream,
    Cause,
}

/// Their names, as in the tables.
const ARG_NAMES: [&str; 18] = [
    "request",
    "iteration",
    "offset_bytes",
    "bytes",
    "rwbs",
    "pid",
    "process",
    "queued_ns",
    "scheduled_ns",
    "delay_ns",
    "delay_reason",
    "pushed_back",
    "in_flight",
    "waiting",
    "outcome",
    "errno",
    "stream",
    "cause",
];

/// The start of the first packet: its sequence, a state that begins there, and names.
pub const FIRST_PACKET: &[u8] = b"\x50\x01\x68\x01\x62";

/// Slots of a device have numbers above its own.
const SLOT_BITS: u32 = 32;

/// The most requests of a device that are shown at the same time. Others are instants on the track of their device.
const MAX_SLOTS: u64 = 16_384;

/// A request, or what is shown of it.
pub struct Event<'a> {
    pub device: u16,
    pub op: Op,
    /// From its issue to its completion, or only its time.
    pub times: (u64, Option<u64>),
    pub args: &'a Message,
}

/// Writes packets, and each track before its first event.
pub struct Tracks {
    output: Output,
    devices: Vec<Slots>,
    names: Vec<String>,
    /// Follows the name of each device.
    mark: &'static str,
    /// Requests shown as instants because there were too many at the same time.
    pub crowded: u64,
}

#[derive(Default)]
struct Slots {
    is_described: bool,
    count: u64,
    /// The end of the last request of each slot.
    free_from: BTreeSet<(u64, u64)>,
}

impl Tracks {
    /// Writes the names of operations and arguments, which all packets refer to by their numbers.
    pub fn new(output: Output, devices: &[Device], mark: &'static str) -> Result<Self> {
        let named = |number: usize, name: &str| {
            let mut entry = Message::default();
            entry.number(1, number as u64 + 1).text(2, name);
            entry
        };
        let mut interned = Message::default();
        for (number, op) in Op::ALL.into_iter().enumerate() {
            interned.message(2, &named(number, op.name()));
        }
        for (number, name) in ARG_NAMES.into_iter().enumerate() {
            interned.message(3, &named(number, name));
        }
        let mut tracks = Self { output, devices: Vec::new(), names: Vec::new(), mark, crowded: 0 };
        tracks.learn(devices);
        let mut packet = Message::default();
        packet.number(10, 1).number(13, 1).message(12, &interned);
        tracks.packet(&packet)?;
        Ok(tracks)
    }

    /// Learns the names of further devices.
    pub fn learn(&mut self, devices: &[Device]) {
        self.names.extend(devices.iter().skip(self.names.len()).map(|device| device.name.clone()));
    }

    /// Writes a request.
    pub fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let (start, end) = event.times;
        self.describe_device(event.device)?;
        let Some(end) = end else { return self.instant(event) };
        let Some(track) = self.slot(event.device, start, end)? else {
            self.crowded += 1;
            return self.instant(event);
        };
        self.track_event(start, 1, track, Some(event))?;
        self.track_event(end, 2, track, None)
    }

    /// The output, when all is written.
    pub fn into_output(self) -> Output {
        self.output
    }

    /// The output.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    fn instant(&mut self, event: &Event<'_>) -> Result<()> {
        self.track_event(event.times.0, 3, track_of(event.device), Some(event))
    }

    /// The slot that becomes free last before the request begins, so that there are as few slots as possible whether rows
    /// come in the order of their issue or of their completion. `None` if there are too many.
    fn slot(&mut self, device: u16, start: u64, end: u64) -> Result<Option<u64>> {
        let slots = &mut self.devices[usize::from(device)];
        let number = match slots.free_from.range(..=(start, u64::MAX)).next_back().copied() {
            Some(free) => {
                slots.free_from.remove(&free);
                free.1
            }
            None if slots.count == MAX_SLOTS => return Ok(None),
            None => {
                slots.count += 1;
                let number = slots.count;
                let mut track = Message::default();
                track.number(1, track_of(device) + number).text(2, &format!("slot {number}"));
                track.number(5, track_of(device)).number(12, number);
                self.track(&track)?;
                number
            }
        };
        self.devices[usize::from(device)].free_from.insert((end.max(start), number));
        Ok(Some(track_of(device) + number))
    }

    fn describe_device(&mut self, device: u16) -> Result<()> {
        let index = usize::from(device);
        if self.devices.len() <= index {
            self.devices.resize_with(index + 1, Slots::default);
        }
        if std::mem::replace(&mut self.devices[index].is_described, true) {
            return Ok(());
        }
        let name = self.names.get(index).map(String::as_str).filter(|name| !name.is_empty()).unwrap_or("device");
        let name = format!("{name}{}", self.mark);
        let mut track = Message::default();
        // Slots are in the order of their numbers.
        track.number(1, track_of(device)).text(2, &name).number(11, 3);
        self.track(&track)
    }

    fn track(&mut self, track: &Message) -> Result<()> {
        let mut packet = Message::default();
        packet.number(10, 1).message(60, track);
        self.packet(&packet)
    }

    fn track_event(&mut self, at: u64, kind: u64, track: u64, of: Option<&Event<'_>>) -> Result<()> {
        let mut event = Message::default();
        event.number(9, kind).number(11, track);
        if let Some(of) = of {
            event.number(10, of.op as u64 + 1).append(of.args);
        }
        let mut packet = Message::default();
        // It needs the state of its sequence: the names.
        packet.number(8, at).number(10, 1).number(13, 2).message(11, &event);
        self.packet(&packet)
    }

    fn packet(&mut self, packet: &Message) -> Result<()> {
        use std::io::Write as _;
        let mut trace = Message::default();
        trace.message(1, packet);
        self.output.write_all(trace.bytes()).map_err(|e| self.output.error(e))
    }
}

fn track_of(device: u16) -> u64 {
    (u64::from(device) + 1) << SLOT_BITS
}

/// The arguments of an event.
#[derive(Default)]
pub struct Args(Message);

impl Args {
    pub fn number(&mut self, arg: Arg, value: u64) -> &mut Self {
        self.add(arg, |annotation| annotation.number(3, value))
    }

    pub fn signed(&mut self, arg: Arg, value: i64) -> &mut Self {
        self.add(arg, |annotation| annotation.number(4, value as u64))
    }

    pub fn text(&mut self, arg: Arg, value: &str) -> &mut Self {
        self.add(arg, |annotation| annotation.text(6, value))
    }

    /// The encoded arguments.
    pub fn message(&self) -> &Message {
        &self.0
    }

    fn add(&mut self, arg: Arg, value: impl FnOnce(&mut Message) -> &mut Message) -> &mut Self {
        let mut annotation = Message::default();
        value(annotation.number(1, arg as u64 + 1));
        self.0.message(4, &annotation);
        self
    }
}
