//! Merges the files of a trace and converts their records to events.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use crate::error::{Error, Result};
use crate::events::{Action, Event, EventSource, Matcher, ReadAhead, warning_late};
use crate::formats::format::{Opened, Options};
use crate::formats::support::left_out::LeftOut;
use crate::io::input::Input;
use crate::model::metadata::Metadata;
use crate::model::request::{Comm, DeviceId};
use crate::model::units::{Nanos, SECTOR_BYTES};
use crate::rows::{Devices, InOrder, Zero, metadata_of, position};
use crate::text::human;

use super::numbers::{NAME, READ_AHEAD, category, event};
use super::part::{Ordered, Part, Pdu};
use super::record::{Record, device_name, operation};

/// Opens a single file.
pub fn open_one(input: Input, options: &Options) -> Result<Opened> {
    open(vec![input], options)
}

/// Opens the files of a trace. Empty files were already removed, so there may be only one.
pub fn open(inputs: Vec<Input>, options: &Options) -> Result<Opened> {
    let mut metadata = match inputs.first() {
        Some(first) => metadata_of(first, NAME),
        None => return Err(Error::format("", "no file to read")),
    };
    metadata.warnings.extend(absent_parts(&inputs));
    let files = inputs.len();
    let parts = inputs.into_iter().map(|input| Part::new(input, files)).collect::<Result<Vec<_>>>()?;
    let mut trace = Trace {
        parts,
        newest: Nanos(i64::MIN),
        late: 0,
        devices: Devices::default(),
        last_device: None,
        processes: HashMap::new(),
        last_process: (0, Comm::default()),
        wall_clock_zero: None,
        start: None,
        left_out: LeftOut::default(),
    };
    for index in 0..trace.parts.len() {
        trace.parts[index].fill(&mut metadata)?;
    }
    let matcher = Matcher::new(ReadAhead::start(trace)?, options.action, &mut metadata)?;
    Ok(Opened::Load(Box::new(InOrder::of_events(matcher, metadata, Zero::Arbitrary)?)))
}

/// Most CPUs of the kernel.
const MAX_CPUS: u32 = 8192;

/// Warnings about the files of CPUs that are missing among these: those beside them that were not given, and gaps in their
/// numbers. blktrace makes a file for each CPU, also if it remains empty.
fn absent_parts(inputs: &[Input]) -> Vec<String> {
    let mut traces: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for input in inputs {
        let name = input.path().to_str().and_then(|name| name.rsplit_once(".blktrace."));
        if let Some((stem, Ok(cpu))) = name.map(|(stem, cpu)| (stem, cpu.parse())) {
            traces.entry(stem).or_default().insert(cpu);
        }
    }
    let mut warnings = Vec::new();
    for (stem, given) in traces {
        let bytes = |cpu: &u32| fs::metadata(format!("{stem}.blktrace.{cpu}")).map(|status| status.len());
        let beside =
            (0..MAX_CPUS).filter(|cpu| !given.contains(cpu) && bytes(cpu).is_ok_and(|bytes| bytes > 0)).count();
        let last = given.last().copied().unwrap_or_default().min(MAX_CPUS);
        let absent: Vec<_> = (0..last).filter(|cpu| bytes(cpu).is_err()).map(|cpu| cpu.to_string()).collect();
        if beside > 0 {
            let read = human::counted(given.len() as u64, "file");
            warnings.push(format!(
                "only {read} of {} {} of the trace: the whole trace is {stem}.blktrace.*",
                given.len() + beside,
                if given.len() == 1 { "was read" } else { "were read" }
            ));
        }
        if !absent.is_empty() {
            warnings.push(format!(
                "{stem}.blktrace.{} does not exist: the requests of that CPU are missing",
                absent.join(", ")
            ));
        }
    }
    warnings
}

/// The merged files of a trace.
struct Trace {
    parts: Vec<Part>,
    newest: Nanos,
    /// Events out of time order.
    late: u64,
    devices: Devices,
    last_device: Option<(u32, DeviceId)>,
    processes: HashMap<u32, Comm>,
    last_process: (u32, Comm),
    /// Wall-clock time of the trace's own zero, in ns since 1970.
    wall_clock_zero: Option<i64>,
    start: Option<Start>,
    left_out: LeftOut,
}

/// The wall-clock time when the trace was started.
enum Start {
    /// The first file with such a time, and the time in ns since 1970.
    At(usize, i64),
    /// Another file has a different time, which was reported.
    Differs,
}

/// The files of a trace are started within this time, one device after the other.
const MAX_START_DIFFERENCE_NS: u64 = 1_000_000_000;

/// The error of a record is a negative number of 16 bits.
const EAGAIN: u16 = 11_u16.wrapping_neg();

/// The most process names in memory; a trace of garbage may have billions.
const MAX_PROCESSES: usize = 1 << 20;

impl EventSource for Trace {
    fn next(&mut self, about: &mut Metadata) -> Result<Option<Event>> {
        loop {
            let earliest = (0..self.parts.len()).filter_map(|i| Some((self.parts[i].next_time()?, i))).min();
            let Some((_, index)) = earliest else { break };
            let Some(ordered) = self.parts[index].next(about)? else { break };
            if let Some(event) = self.event(index, &ordered, about) {
                if event.at < self.newest {
                    self.late += 1;
                    self.parts[index].widen();
                }
                self.newest = self.newest.max(event.at);
                return Ok(Some(event));
            }
        }
        warning_late(std::mem::take(&mut self.late), READ_AHEAD, about);
        self.left_out.add_warnings(about);
        Ok(None)
    }

    fn progress(&self) -> Option<f64> {
        let all: Vec<f64> = self.parts.iter().filter_map(Part::progress).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }
}

impl Trace {
    /// The event of a record, if it is one that requests are made from.
    fn event(&mut self, part: usize, ordered: &Ordered, about: &mut Metadata) -> Option<Event> {
        let record = &ordered.record;
        if record.has(category::NOTIFY) {
            self.notify(part, ordered, about);
            return None;
        }
        let action = match record.number() {
            event::QUEUE => Action::Queue,
            event::GET_REQUEST => Action::GetRequest,
            event::INSERT => Action::Insert,
            event::ISSUE => Action::Issue,
            event::REQUEUE => Action::Requeue,
            event::SPLIT => Action::Split,
            // The position that a zone append was written to has a record of its own, without this category.
            event::COMPLETE if record.has(category::ZONE_APPEND) && !record.has(category::COMPLETE) => return None,
            event::COMPLETE if record.error == EAGAIN => Action::Refuse,
            event::COMPLETE => Action::Complete,
            event::REMAP => {
                self.left_out.remaps += 1;
                return None;
            }
            _ => return None,
        };
        let sectors = u64::from(record.bytes).div_ceil(SECTOR_BYTES);
        let (op, flags) = match operation(record, sectors) {
            Ok(request) => request,
            Err(other) => {
                if let Err(problem) = self.left_out.count(other) {
                    bad_record(record, problem, about);
                }
                return None;
            }
        };
        let position = position(op, record.sector, sectors);
        let time = i64::try_from(record.time).ok();
        let device = self.device(record.device, about);
        let (Ok((sector, sectors)), Some(at), Some(device)) = (position, time, device) else {
            bad_record(record, "its position or time is too large", about);
            return None;
        };
        Some(Event {
            at: Nanos(at),
            action,
            device,
            sector,
            sectors,
            op,
            flags,
            is_append: record.has(category::ZONE_APPEND),
            pid: Some(record.pid),
            comm: self.process(record.pid),
        })
    }

    /// The device with this number in the kernel. Mostly it is that of the previous record.
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

    fn notify(&mut self, part: usize, ordered: &Ordered, about: &mut Metadata) {
        if let Pdu::WallClock(wall) = ordered.pdu {
            self.compare_starts(part, wall, about);
        }
        match ordered.pdu {
            Pdu::Name(name)
                if self.processes.len() < MAX_PROCESSES || self.processes.contains_key(&ordered.record.pid) =>
            {
                self.processes.insert(ordered.record.pid, name);
                self.last_process = (ordered.record.pid, name);
            }
            Pdu::WallClock(wall) if self.wall_clock_zero.is_none() => {
                let zero = i64::try_from(ordered.record.time).ok().and_then(|time| wall.checked_sub(time));
                self.wall_clock_zero = zero;
                about.epoch_unix_ns = zero;
            }
            _ => {}
        }
    }
}

impl Trace {
    /// Reports files of different traces, which do not make one load.
    fn compare_starts(&mut self, part: usize, wall: i64, about: &mut Metadata) {
        match self.start {
            None => self.start = Some(Start::At(part, wall)),
            Some(Start::At(first, start)) if first != part && wall.abs_diff(start) > MAX_START_DIFFERENCE_NS => {
                about.warning(format!(
                    "{} was started {} after {}: are they files of different traces?",
                    self.parts[if wall > start { part } else { first }].path().display(),
                    Nanos(i64::try_from(wall.abs_diff(start)).unwrap_or(i64::MAX)),
                    self.parts[if wall > start { first } else { part }].path().display()
                ));
                self.start = Some(Start::Differs);
            }
            Some(_) => {}
        }
    }
}

fn bad_record(record: &Record, problem: &str, about: &mut Metadata) {
    about.counts.bad_lines += 1;
    about.warning_of_line(format!("a record of device {} left out: {problem}", device_name(record.device)));
}
