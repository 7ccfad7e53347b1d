//! A target of a test's time that really stores, sector by sector, each at its own moment while the request is under way;
//! and that can be made to lie, to fail, and to stop in the middle.
#![allow(unsafe_code, reason = "like a device, it writes into the memory of a read long after it was asked to")]

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use iosonar_trace::{Nanos, Op};

use crate::engine::mock::Time;
use crate::engine::{Completion, Io, Target};
use crate::pipeline::buffers::Arena;
use crate::schedule::clock::Clock;

/// How the store does one request.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long it takes.
    pub takes: i64,
    /// What it says at the end, if not that all was done.
    pub result: Option<i64>,
    /// Sectors that it really does, if not what its result says.
    pub does: Option<u64>,
    /// What it does otherwise than it says.
    pub lie: Option<Lie>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { takes: 10, result: None, does: None, lie: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Writes nothing.
    LostWrite,
    /// Discards nothing.
    LostDiscard,
    /// Writes only the first half of its sectors.
    TornWrite,
    /// Writes only the first half of its last sector.
    TornSector,
    /// Writes so many sectors further on.
    Misdirected(u64),
    /// Reads so many sectors further on.
    MisdirectedRead(u64),
    /// One bit of what is written, or brought, is not as it was.
    FlippedBit(usize),
    /// Brings nothing.
    PhantomRead,
    /// Brings what was there when the store was as it was this many requests ago.
    StaleRead,
}

/// Where lost data goes.
const NOWHERE: usize = usize::MAX;

#[derive(Clone, Copy, Debug)]
struct Step {
    op: Op,
    memory: usize,
    from: usize,
    to: usize,
    bytes: usize,
}

struct Flying {
    at: i64,
    steps: Vec<(i64, Step)>,
    lie: Option<Lie>,
    offset: usize,
    length: usize,
    is_read: bool,
    memory: usize,
}

/// The target.
pub struct Store<'a> {
    time: Time,
    arena: Arc<Arena>,
    plan: Box<dyn FnMut(&Io<'_>) -> Plan + 'a>,
    /// What it holds.
    pub disk: Vec<u8>,
    /// What it would hold if it did as it says.
    pub honest: Vec<u8>,
    /// What it held at the beginning.
    old: Vec<u8>,
    staged: Vec<(Completion, Flying)>,
    flying: BTreeMap<(i64, u32), (Completion, Flying)>,
    /// Steps to come, in the order of their times.
    steps: BTreeMap<(i64, usize), Step>,
    count: usize,
    /// Reads that brought something else than what an honest store would have: where they began.
    pub wrong_reads: Vec<u64>,
}

impl<'a> Store<'a> {
    /// With `sectors` sectors of the same byte.
    pub fn new(time: &Time, arena: &Arc<Arena>, sectors: u64, plan: impl FnMut(&Io<'_>) -> Plan + 'a) -> Self {
        let disk = vec![0xaa; sectors as usize * 512];
        Self {
            time: time.clone(),
            arena: Arc::clone(arena),
            plan: Box::new(plan),
            honest: disk.clone(),
            old: disk.clone(),
            disk,
            staged: Vec::new(),
            flying: BTreeMap::new(),
            steps: BTreeMap::new(),
            count: 0,
            wrong_reads: Vec::new(),
        }
    }

    fn memory(&self, at: usize, bytes: usize) -> &'a mut [u8] {
        // SAFETY: the request that this belongs to is in flight, so its buffer is this store's alone; the arena outlives it.
        unsafe { std::slice::from_raw_parts_mut((self.arena.raw().0 as usize + at) as *mut u8, bytes) }
    }

    /// Does all that was to be done by now.
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
                    if to != NOWHERE {
                        self.disk[to..to + bytes].copy_from_slice(data);
                    }
                    self.honest[from..from + bytes].copy_from_slice(data);
                }
                _ => {
                    if to != NOWHERE {
                        self.disk[to..to + bytes].fill(0);
                    }
                    self.honest[from..from + bytes].fill(0);
                }
            }
        }
    }

    /// The lies that one sees only at the end of a request.
    fn end(&mut self, flying: &Flying) {
        let Flying { lie, offset, length, is_read, memory, .. } = *flying;
        let range = offset..offset + length;
        match lie {
            Some(Lie::FlippedBit(bit)) if length > 0 => {
                let at = bit / 8 % length;
                let bytes = if is_read { self.memory(memory, length) } else { &mut self.disk[range.clone()] };
                bytes[at] ^= 1 << (bit % 8);
            }
            Some(Lie::StaleRead) if is_read => self.memory(memory, length).copy_from_slice(&self.old[range.clone()]),
            _ => {}
        }
        if is_read && *self.memory(memory, length) != self.honest[range] {
            self.wrong_reads.push(offset as u64 / 512);
        }
    }
}

impl Target for Store<'_> {
    fn stage(&mut self, io: Io<'_>) {
        let Plan { takes, result, does, lie } = (self.plan)(&io);
        let memory = io.buffer.map_or(0, |b| self.arena.address(b) as usize - self.arena.raw().0 as usize);
        let result = result.unwrap_or(if io.op.modifies() && io.op != Op::Write || io.op == Op::Flush {
            0
        } else {
            io.length as i64
        });
        let sectors = io.length / 512;
        let said = if result < 0 { 0 } else { (result as u64).div_ceil(512) };
        let done = if io.op == Op::Write || io.op == Op::Read { does.unwrap_or(said).min(sectors) } else { sectors };
        let failed = result < 0 && does.is_none();
        let mut steps = Vec::new();
        for i in 0..if failed || io.op == Op::Flush { 0 } else { done } {
            let at = (io.offset + i * 512) as usize;
            let half = (takes / 2).max(1);
            let moment = 1 + (i as i64 * 7 + io.offset as i64 / 512 * 3) % half.max(1);
            let mut step = Step { op: io.op, memory: memory + i as usize * 512, from: at, to: at, bytes: 512 };
            let is_write = io.op == Op::Write;
            let wrap = |n: u64| (at + n as usize * 512) % self.disk.len();
            match lie {
                Some(Lie::LostWrite) if is_write => step.to = NOWHERE,
                Some(Lie::LostDiscard) if io.op == Op::Discard => step.to = NOWHERE,
                Some(Lie::TornWrite) if is_write && i >= sectors.div_ceil(2) => step.to = NOWHERE,
                Some(Lie::Misdirected(n)) if is_write => step.to = wrap(n),
                Some(Lie::MisdirectedRead(n)) if io.op == Op::Read => step.from = wrap(n),
                Some(Lie::TornSector) if is_write && i + 1 == sectors => step.bytes = 256,
                Some(Lie::PhantomRead) if io.op == Op::Read => continue,
                _ => {}
            }
            steps.push((moment, step));
            if step.bytes == 256 {
                // The honest half of the sector.
                let rest = Step { memory: step.memory + 256, from: at + 256, to: NOWHERE, ..step };
                steps.push((moment, rest));
            }
        }
        let (offset, length) = (io.offset as usize, (said.min(sectors) * 512) as usize);
        let is_read = io.op == Op::Read && result > 0;
        let flying = Flying { at: takes, steps, lie, offset, length, is_read, memory };
        self.staged.push((Completion { slot: io.slot, result }, flying));
    }

    fn submit(&mut self) -> io::Result<()> {
        let now = self.time.now().0;
        self.work(now);
        for (completion, mut flying) in std::mem::take(&mut self.staged) {
            for (at, step) in std::mem::take(&mut flying.steps) {
                self.count += 1;
                self.steps.insert((now + at, self.count), step);
            }
            flying.at += now;
            self.flying.insert((flying.at, completion.slot), (completion, flying));
        }
        Ok(())
    }

    fn reap(&mut self) -> Option<Completion> {
        let now = self.time.now().0;
        self.work(now);
        let first = self.flying.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let (completion, flying) = first.remove();
        self.end(&flying);
        Some(completion)
    }

    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        let until = self.time.now().0 + timeout.0;
        let next = self.flying.keys().next().map_or(until, |(at, _)| (*at).min(until));
        self.time.advance_to(Nanos(next));
        Ok(())
    }
}
