//! A store with simulated time: a mock target with content, which transfers each sector at its own time while the request
//! is in flight. It can inject faults, errors and short transfers.
#![allow(unsafe_code, reason = "like a device, it writes into a read buffer after the request was staged")]

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use iosonar_pacing::buffers::Arena;
use iosonar_pacing::clock::Clock;
use iosonar_pacing::idle::Waiter;
use iosonar_trace::{Nanos, Op};

use crate::engine::mock::Time;
use crate::engine::{Completion, Io, Target};

/// How the store performs a request.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Latency in ns.
    pub latency: i64,
    /// The reported result, unless complete.
    pub result: Option<i64>,
    /// The number of sectors transferred, unless as reported.
    pub transferred: Option<u64>,
    /// The injected fault.
    pub fault: Option<Fault>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { latency: 10, result: None, transferred: None, fault: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Writes nothing.
    LostWrite,
    /// Discards nothing.
    LostDiscard,
    /// Writes only the first half of its sectors.
    TornWrite,
    /// Writes only the first half of its last sector.
    TornSector,
    /// Writes this many sectors further on.
    Misdirected(u64),
    /// Reads this many sectors further on.
    MisdirectedRead(u64),
    /// Flips a bit of the data.
    FlippedBit(usize),
    /// Reports a read without transferring data.
    PhantomRead,
    /// Returns the initial content.
    StaleRead,
}

/// Target position of data that is discarded.
const DISCARDED: usize = usize::MAX;

#[derive(Clone, Copy, Debug)]
struct Step {
    op: Op,
    memory: usize,
    from: usize,
    to: usize,
    bytes: usize,
}

struct InFlight {
    at: i64,
    steps: Vec<(i64, Step)>,
    fault: Option<Fault>,
    offset: usize,
    length: usize,
    is_read: bool,
    memory: usize,
}

pub struct Store<'a> {
    time: Time,
    arena: Arc<Arena>,
    plan: Box<dyn FnMut(&Io<'_>) -> Plan + 'a>,
    pub disk: Vec<u8>,
    /// The content without faults.
    pub correct: Vec<u8>,
    /// The initial content.
    old: Vec<u8>,
    staged: Vec<(Completion, InFlight)>,
    in_flight: BTreeMap<(i64, u32), (Completion, InFlight)>,
    /// Pending steps in the order of their times.
    steps: BTreeMap<(i64, usize), Step>,
    count: usize,
    /// First sectors of reads that returned wrong data.
    pub wrong_reads: Vec<u64>,
}

impl<'a> Store<'a> {
    /// All sectors contain the same byte.
    pub fn new(time: &Time, arena: &Arc<Arena>, sectors: u64, plan: impl FnMut(&Io<'_>) -> Plan + 'a) -> Self {
        let disk = vec![0xaa; sectors as usize * 512];
        Self {
            time: time.clone(),
            arena: Arc::clone(arena),
            plan: Box::new(plan),
            correct: disk.clone(),
            old: disk.clone(),
            disk,
            staged: Vec::new(),
            in_flight: BTreeMap::new(),
            steps: BTreeMap::new(),
            count: 0,
            wrong_reads: Vec::new(),
        }
    }

    fn memory(&self, at: usize, bytes: usize) -> &'a mut [u8] {
        // SAFETY: the request is in flight, so this store owns its buffer; the arena outlives it.
        unsafe { std::slice::from_raw_parts_mut((self.arena.raw().0 as usize + at) as *mut u8, bytes) }
    }

    /// Performs all steps up to `now`.
    fn work(&mut self, now: i64) {
        while let Some(first) = self.steps.first_entry() {
            if first.key().0 > now {
                return;
            }
            let Step { op, memory, from, to, bytes } = first.remove();
            match op {
                Op::Read => self.memory(memory, bytes).copy_from_slice(&self.disk[from..from + bytes]),
                Op::Write => {
                    let data = self.memory(memory, bytes);
                    if to != DISCARDED {
                        self.disk[to..to + bytes].copy_from_slice(data);
                    }
                    self.correct[from..from + bytes].copy_from_slice(data);
                }
                _ => {
                    if to != DISCARDED {
                        self.disk[to..to + bytes].fill(0);
                    }
                    self.correct[from..from + bytes].fill(0);
                }
            }
        }
    }

    /// Completes a request, with faults that apply to the whole of it.
    fn end(&mut self, in_flight: &InFlight) {
        let InFlight { fault, offset, length, is_read, memory, .. } = *in_flight;
        let range = offset..offset + length;
        match fault {
            Some(Fault::FlippedBit(bit)) if length > 0 => {
                let at = bit / 8 % length;
                let bytes = if is_read { self.memory(memory, length) } else { &mut self.disk[range.clone()] };
                bytes[at] ^= 1 << (bit % 8);
            }
            Some(Fault::StaleRead) if is_read => self.memory(memory, length).copy_from_slice(&self.old[range.clone()]),
            _ => {}
        }
        if is_read && *self.memory(memory, length) != self.correct[range] {
            self.wrong_reads.push(offset as u64 / 512);
        }
    }
}

impl Target for Store<'_> {
    fn stage(&mut self, io: Io<'_>) {
        let Plan { latency, result, transferred, fault } = (self.plan)(&io);
        let memory = io.buffer.map_or(0, |b| self.arena.address(b) as usize - self.arena.raw().0 as usize);
        let result = result.unwrap_or(if io.op.modifies() && io.op != Op::Write || io.op == Op::Flush {
            0
        } else {
            io.length as i64
        });
        let sectors = io.length / 512;
        let reported = if result < 0 { 0 } else { (result as u64).div_ceil(512) };
        let done = if io.op == Op::Write || io.op == Op::Read {
            transferred.unwrap_or(reported).min(sectors)
        } else {
            sectors
        };
        let failed = result < 0 && transferred.is_none();
        let mut steps = Vec::new();
        for i in 0..if failed || io.op == Op::Flush { 0 } else { done } {
            let at = (io.offset + i * 512) as usize;
            let half = (latency / 2).max(1);
            let moment = 1 + (i as i64 * 7 + io.offset as i64 / 512 * 3) % half.max(1);
            let mut step = Step { op: io.op, memory: memory + i as usize * 512, from: at, to: at, bytes: 512 };
            let is_write = io.op == Op::Write;
            let wrap = |n: u64| (at + n as usize * 512) % self.disk.len();
            match fault {
                Some(Fault::LostWrite) if is_write => step.to = DISCARDED,
                Some(Fault::LostDiscard) if io.op == Op::Discard => step.to = DISCARDED,
                Some(Fault::TornWrite) if is_write && i >= sectors.div_ceil(2) => step.to = DISCARDED,
                Some(Fault::Misdirected(n)) if is_write => step.to = wrap(n),
                Some(Fault::MisdirectedRead(n)) if io.op == Op::Read => step.from = wrap(n),
                Some(Fault::TornSector) if is_write && i + 1 == sectors => step.bytes = 256,
                Some(Fault::PhantomRead) if io.op == Op::Read => continue,
                _ => {}
            }
            steps.push((moment, step));
            if step.bytes == 256 {
                // Only the fault-free content gets the other half of the sector.
                let rest = Step { memory: step.memory + 256, from: at + 256, to: DISCARDED, ..step };
                steps.push((moment, rest));
            }
        }
        let (offset, length) = (io.offset as usize, (reported.min(sectors) * 512) as usize);
        let is_read = io.op == Op::Read && result > 0;
        let in_flight = InFlight { at: latency, steps, fault, offset, length, is_read, memory };
        self.staged.push((Completion { slot: io.slot, result, issued: None }, in_flight));
    }

    fn submit(&mut self) -> io::Result<()> {
        let now = self.time.now().0;
        self.work(now);
        for (completion, mut in_flight) in std::mem::take(&mut self.staged) {
            for (at, step) in std::mem::take(&mut in_flight.steps) {
                self.count += 1;
                self.steps.insert((now + at, self.count), step);
            }
            in_flight.at += now;
            self.in_flight.insert((in_flight.at, completion.slot), (completion, in_flight));
        }
        Ok(())
    }

    fn reap(&mut self) -> Option<Completion> {
        let now = self.time.now().0;
        self.work(now);
        let first = self.in_flight.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let (completion, in_flight) = first.remove();
        self.end(&in_flight);
        Some(completion)
    }
}

impl Waiter for Store<'_> {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        let until = self.time.now().0 + timeout.0;
        let next = self.in_flight.keys().next().map_or(until, |(at, _)| (*at).min(until));
        self.time.advance_to(Nanos(next));
        Ok(())
    }
}
