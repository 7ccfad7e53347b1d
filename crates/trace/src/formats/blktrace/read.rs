//! Merges the files, and makes events of their records.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::events::{Action, Ahead, Event, EventSource, Matcher};
use crate::formats::{Opened, Options};
use crate::input::Input;
use crate::metadata::Metadata;
use crate::request::{Comm, DeviceId};
use crate::rows::{Devices, InOrder, Zero, metadata_of};
use crate::units::{MAX_END_SECTOR, Nanos, SECTOR_BYTES, Sector, Sectors};

use super::part::{Ordered, Part, Pdu};
use super::record::{Record, device_name, operation};
use super::{FORMAT, category, event};

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
            let earliest = (0..self.parts.len()).filter_map(|i| Some((self.parts[i].next_time()?, i))).min();
            let Some((_, index)) = earliest else { break };
            let Some(ordered) = self.parts[index].next(about)? else { break };
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
        let all: Vec<f64> = self.parts.iter().filter_map(Part::progress).collect();
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
            about.notice_of_line(format!(
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
