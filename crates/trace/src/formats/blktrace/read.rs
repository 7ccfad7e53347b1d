//! Reads the files and merges them.

use std::collections::HashMap;
use std::io::{self, BufReader, Read};

use crate::error::{Error, Result};
use crate::events::{Action, Ahead, Event, EventSource, Matcher};
use crate::formats::{Opened, Options};
use crate::input::Input;
use crate::metadata::Metadata;
use crate::reorder::Reorder;
use crate::request::{Comm, DeviceId, Flags, Op};
use crate::rows::{Devices, InOrder, Zero, metadata_of, note_damage};
use crate::units::{MAX_END_SECTOR, Nanos, SECTOR_BYTES, Sector, Sectors};

use super::{AHEAD, FORMAT, MAGIC, MINOR_BITS, category, event, notification};

/// How the records of a file are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    order: ByteOrder,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Seven,
    Eight,
}

impl Version {
    fn record_bytes(self) -> usize {
        match self {
            Self::Seven => 48,
            Self::Eight => 64,
        }
    }
}

/// The layout that a beginning tells.
pub fn layout(head: &[u8]) -> Option<Layout> {
    let magic: [u8; 4] = head.get(..4)?.try_into().ok()?;
    [(ByteOrder::Little, u32::from_le_bytes(magic)), (ByteOrder::Big, u32::from_be_bytes(magic))].into_iter().find_map(
        |(order, magic)| {
            let version = match magic.checked_sub(MAGIC)? {
                7 => Version::Seven,
                8 => Version::Eight,
                _ => return None,
            };
            Some(Layout { order, version })
        },
    )
}

/// One record, without what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    magic: u32,
    sequence: u32,
    time: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    device: u32,
    cpu: u32,
    pdu_bytes: u16,
}

impl Record {
    fn read(layout: Layout, bytes: &[u8]) -> Self {
        let big = layout.order == ByteOrder::Big;
        let u16_at = |at: usize| {
            let value = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
            if big { value.swap_bytes() } else { value }
        };
        let u32_at = |at: usize| {
            let value = u32::from_le_bytes(*bytes[at..].first_chunk().unwrap_or(&[0; 4]));
            if big { value.swap_bytes() } else { value }
        };
        let u64_at = |at: usize| {
            let value = u64::from_le_bytes(*bytes[at..].first_chunk().unwrap_or(&[0; 8]));
            if big { value.swap_bytes() } else { value }
        };
        let (action, pid, device, cpu, pdu_bytes) = match layout.version {
            Version::Seven => (u32_at(28).into(), u32_at(32), u32_at(36), u32_at(40), u16_at(46)),
            Version::Eight => (u64_at(32), u32_at(28), u32_at(40), u32_at(44), u16_at(50)),
        };
        Self {
            magic: u32_at(0),
            sequence: u32_at(4),
            time: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            action,
            pid,
            device,
            cpu,
            pdu_bytes,
        }
    }

    /// Its event's or notification's number.
    fn number(&self) -> u16 {
        (self.action & 0xffff) as u16 & !event::CGROUP
    }

    fn has(&self, category: u64) -> bool {
        self.action >> category::SHIFT & category != 0
    }
}

/// Opens the files of one trace.
pub fn open(inputs: Vec<Input>, options: &Options) -> Result<Opened> {
    let mut metadata = match inputs.first() {
        Some(first) => metadata_of(first, FORMAT.name),
        None => return Err(Error::format("", "no file to read")),
    };
    if inputs.len() == 1 {
        metadata.notices.extend(siblings(&inputs[0]));
    }
    let parts = inputs.into_iter().map(Part::new).collect::<Result<Vec<_>>>()?;
    let mut trace = Trace {
        parts,
        devices: Devices::default(),
        last_device: None,
        processes: HashMap::new(),
        last_process: (0, Comm::default()),
        sequences: HashMap::new(),
        last_sequence: ((0, 0), None),
        clock: None,
        remaps: 0,
        driver_commands: 0,
    };
    for index in 0..trace.parts.len() {
        trace.parts[index].fill(&mut metadata)?;
    }
    let matcher = Matcher::new(Ahead::start(trace)?, options.action, &mut metadata)?;
    Ok(Opened::Load(Box::new(InOrder::of_events(matcher, metadata, Zero::Arbitrary)?)))
}

/// Whoever converts one CPU's file out of several should know that there are more.
fn siblings(input: &Input) -> Option<String> {
    let path = input.path();
    let name = path.to_str()?;
    let (stem, cpu) = name.rsplit_once(".blktrace.")?;
    let cpu: u32 = cpu.parse().ok()?;
    let others = (0..4096)
        .filter(|&other| other != cpu)
        .find(|other| std::path::Path::new(&format!("{stem}.blktrace.{other}")).exists());
    others.map(|_| format!("only the file of one CPU was read; the whole trace is {stem}.blktrace.*"))
}

/// A file: its records in order, as far as they were read.
struct Part {
    input: BufReader<Input>,
    layout: Layout,
    ahead: Reorder<Ordered>,
    records: u64,
    ended: bool,
}

/// A record with what followed it, by time; equal ones in the order of the file.
struct Ordered {
    key: (u64, u64),
    record: Record,
    pdu: Pdu,
}

/// Of what follows a record, what is needed of it.
#[derive(Clone, Copy)]
enum Pdu {
    Nothing,
    Name(Comm),
    /// Nanoseconds since 1970.
    Wall(i64),
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Ordered {}
impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Part {
    fn new(input: Input) -> Result<Self> {
        let Some(layout) = layout(input.head()) else {
            let problem = "does not begin with a record of blktrace, of version 7 or 8";
            return Err(Error::format(input.path(), problem));
        };
        let input = BufReader::with_capacity(256 * 1024, input);
        Ok(Self { input, layout, ahead: Reorder::default(), records: 0, ended: false })
    }

    fn fill(&mut self, about: &mut Metadata) -> Result<()> {
        while !self.ended && self.ahead.len() < AHEAD {
            let read = self.read().map_err(|e| Error::io(self.input.get_ref().path(), e))?;
            let problem = match read {
                Found::Record(ordered) => {
                    self.ahead.push(ordered);
                    continue;
                }
                Found::End => None,
                Found::Cut => Some("ends in the middle of a record: it was cut short"),
                Found::Lost => Some("does not go on with a record; nothing behind that place can be read"),
            };
            self.ended = true;
            if let Some(problem) = problem {
                about.complete = false;
                let path = self.input.get_ref().path().display();
                about.notice(format!("{path}, behind record {}: {problem}", self.records));
            }
            note_damage(self.input.get_ref(), about);
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<Found> {
        let mut buffer = [0; 64];
        let bytes = &mut buffer[..self.layout.version.record_bytes()];
        match read_whole(&mut self.input, bytes)? {
            0 => return Ok(Found::End),
            n if n < bytes.len() => return Ok(Found::Cut),
            _ => {}
        }
        let record = Record::read(self.layout, bytes);
        if record.magic & !0xff != MAGIC {
            return Ok(Found::Lost);
        }
        let mut pdu = [0; 64];
        let kept = usize::from(record.pdu_bytes).min(pdu.len());
        if read_whole(&mut self.input, &mut pdu[..kept])? < kept {
            return Ok(Found::Cut);
        }
        let rest = u64::from(record.pdu_bytes) - kept as u64;
        if rest > 0 && io::copy(&mut self.input.by_ref().take(rest), &mut io::sink())? < rest {
            return Ok(Found::Cut);
        }
        self.records += 1;
        let pdu = self.pdu(&record, &pdu[..kept]);
        Ok(Found::Record(Ordered { key: (record.time, self.records), record, pdu }))
    }

    fn pdu(&self, record: &Record, pdu: &[u8]) -> Pdu {
        if !record.has(category::NOTIFY) {
            return Pdu::Nothing;
        }
        match record.number() {
            notification::PROCESS => {
                let end = pdu.iter().position(|&b| b == 0).unwrap_or(pdu.len());
                Pdu::Name(Comm::new(&String::from_utf8_lossy(&pdu[..end])))
            }
            notification::TIMESTAMP => match pdu {
                [a, b, c, d, e, f, g, h, ..] => {
                    let (secs, ns) = ([*a, *b, *c, *d], [*e, *f, *g, *h]);
                    let number = |four| match self.layout.order {
                        ByteOrder::Little => u32::from_le_bytes(four),
                        ByteOrder::Big => u32::from_be_bytes(four),
                    };
                    Pdu::Wall(i64::from(number(secs)) * 1_000_000_000 + i64::from(number(ns)))
                }
                _ => Pdu::Nothing,
            },
            _ => Pdu::Nothing,
        }
    }
}

/// What was found at a place of the file.
enum Found {
    Record(Ordered),
    End,
    Cut,
    Lost,
}

/// Reads until the buffer is full or the file ends; returns how much that was.
fn read_whole(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// The files as one trace.
struct Trace {
    parts: Vec<Part>,
    devices: Devices,
    last_device: Option<(u32, DeviceId)>,
    processes: HashMap<u32, Comm>,
    last_process: (u32, Comm),
    /// For each device and CPU the last sequence number.
    sequences: HashMap<(u32, u32), u32>,
    /// The entry of the record before.
    last_sequence: ((u32, u32), Option<u32>),
    /// Wall-clock time of the trace's own zero, in ns since 1970.
    clock: Option<i64>,
    remaps: u64,
    driver_commands: u64,
}

/// Process names that are kept; a trace of garbage may name billions.
const MAX_PROCESSES: usize = 1 << 20;

impl EventSource for Trace {
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Event>> {
        loop {
            let earliest = (0..self.parts.len()).filter_map(|i| Some((self.parts[i].ahead.peek()?.key.0, i))).min();
            let Some((_, index)) = earliest else { break };
            let part = &mut self.parts[index];
            let Some(ordered) = part.ahead.pop() else { break };
            part.fill(about)?;
            if let Some(event) = self.take(&ordered, about) {
                return Ok(Some(event));
            }
        }
        if self.remaps > 0 {
            let count = std::mem::take(&mut self.remaps);
            about.notice(format!("{count} requests were handed from one device to another (remapped)"));
        }
        if self.driver_commands > 0 {
            let count = std::mem::take(&mut self.driver_commands);
            about.notice(format!("{count} events of commands to the driver that are no requests were left out"));
        }
        Ok(None)
    }

    fn progress(&self) -> Option<f64> {
        let all: Vec<f64> = self.parts.iter().filter_map(|part| part.input.get_ref().progress()).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }
}

impl Trace {
    fn take(&mut self, ordered: &Ordered, about: &mut Metadata) -> Option<Event> {
        let record = &ordered.record;
        if record.has(category::NOTIFY) {
            self.notify(ordered, about);
            return None;
        }
        self.follow_sequence(record, about);
        let action = match record.number() {
            event::QUEUE => Action::Queue,
            event::GET_REQUEST => Action::GetRequest,
            event::INSERT => Action::Insert,
            event::ISSUE => Action::Issue,
            event::COMPLETE => Action::Complete,
            event::REMAP => {
                self.remaps += 1;
                return None;
            }
            _ => return None,
        };
        if record.has(category::DRIVER_COMMAND) {
            self.driver_commands += 1;
            return None;
        }
        let sectors = u64::from(record.bytes).div_ceil(SECTOR_BYTES);
        let (op, flags) = operation(record, sectors)?;
        let sector = if sectors == 0 { 0 } else { record.sector };
        let place = sector.checked_add(sectors).filter(|&end| end <= MAX_END_SECTOR);
        let time = i64::try_from(record.time).ok();
        let device = self.device(record.device, about);
        let (Some(_), Some(at), Some(device)) = (place, time, device) else {
            about.counts.bad_lines += 1;
            let name = device_name(record.device);
            about.notice(format!(
                "a record of the device {name} was left out: its place or time is beyond anything possible"
            ));
            return None;
        };
        Some(Event {
            at: Nanos(at),
            action,
            device,
            sector: Sector(sector),
            sectors: Sectors(sectors),
            op,
            flags,
            pid: Some(record.pid),
            comm: self.process(record.pid),
        })
    }

    /// The device of that number in the kernel. Mostly it is that of the record before.
    fn device(&mut self, number: u32, about: &mut Metadata) -> Option<DeviceId> {
        if let Some((last, device)) = self.last_device
            && last == number
        {
            return Some(device);
        }
        let device = self.devices.number(device_name(number).as_bytes(), about)?;
        self.last_device = Some((number, device));
        Some(device)
    }

    fn process(&mut self, pid: u32) -> Comm {
        if self.last_process.0 != pid {
            self.last_process = (pid, self.processes.get(&pid).copied().unwrap_or_default());
        }
        self.last_process.1
    }

    fn notify(&mut self, ordered: &Ordered, about: &mut Metadata) {
        match ordered.pdu {
            Pdu::Name(name)
                if self.processes.len() < MAX_PROCESSES || self.processes.contains_key(&ordered.record.pid) =>
            {
                self.processes.insert(ordered.record.pid, name);
                self.last_process = (ordered.record.pid, name);
            }
            Pdu::Wall(wall) if self.clock.is_none() => {
                let zero = i64::try_from(ordered.record.time).ok().and_then(|time| wall.checked_sub(time));
                self.clock = zero;
                about.epoch_unix_ns = zero;
            }
            _ => {}
        }
    }

    fn follow_sequence(&mut self, record: &Record, about: &mut Metadata) {
        let place = (record.device, record.cpu);
        if self.last_sequence.0 != place {
            if let (place, Some(sequence)) = self.last_sequence {
                self.sequences.insert(place, sequence);
            }
            self.last_sequence = (place, self.sequences.get(&place).copied());
        }
        let last = self.last_sequence.1.replace(record.sequence);
        if let Some(last) = last {
            let gap = record.sequence.wrapping_sub(last);
            // A jump by half the range is a step back: records that changed places.
            if gap > 1 && gap < 1 << 31 {
                about.counts.lost_events += u64::from(gap - 1);
            }
        }
    }
}

/// `major,minor`, as blkparse has it.
fn device_name(number: u32) -> String {
    format!("{},{}", number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1))
}

fn operation(record: &Record, sectors: u64) -> Option<(Op, Flags)> {
    let mut flags = Flags::NONE;
    for (bit, flag) in [
        (category::SYNC, Flags::SYNC),
        (category::AHEAD, Flags::READAHEAD),
        (category::META, Flags::META),
        (category::FUA, Flags::FUA),
        (category::FLUSH, Flags::PREFLUSH),
    ] {
        if record.has(bit) {
            flags = flags.with(flag);
        }
    }
    let op = if record.has(category::DISCARD) {
        Op::Discard
    } else if record.has(category::WRITE_ZEROES) {
        Op::WriteZeroes
    } else if sectors == 0 && record.has(category::FLUSH) {
        Op::Flush
    } else if record.has(category::WRITE) {
        Op::Write
    } else if record.has(category::READ) {
        Op::Read
    } else {
        return None;
    };
    // A flush is nothing but that, however it was asked for.
    let flushes = Flags::PREFLUSH.with(Flags::FUA);
    Some((op, if op == Op::Flush { Flags(flags.0 & !flushes.0) } else { flags }))
}
