//! From the input to the target: what is due is let go, as far as depth and conflicts allow.

use iosonar_trace::{DelayReason, Flags, IoResult, Nanos, Op, Outcome};

use super::Issuer;
use super::idle::Idle;
use super::limits::Pace;
use super::slot::Slot;
use crate::engine::{Io, Target};
use crate::issuer::conflicts::{Policy, Range, Verdict};
use crate::issuer::dispatch_queue::DispatchQueue;
use crate::pipeline::io::PreparedIo;
use crate::schedule::clock::Clock;

impl<T: Target, C: Clock, I: Idle<T>> Issuer<'_, T, C, I> {
    /// Moves what is due from the input, so that it can be counted as waiting.
    #[inline]
    pub(super) fn take_due(&mut self, now: Nanos) {
        if now >= self.limits.until {
            self.gates.clear();
            self.is_over = true;
            return;
        }
        if self.clients.is_some() {
            return self.take_clients(now);
        }
        while let Some((deadline, target)) = self.input.next()
            && deadline <= now
            && !self.gates.get(self.gates.of(target)).is_full()
            && let Some(next) = self.input.take()
        {
            self.gates.push(next);
        }
    }

    /// The same in a closed loop.
    fn take_clients(&mut self, now: Nanos) {
        while !self.gates.is_any_full()
            && let Some(clients) = &mut self.clients
            && let Some(next) = clients.due(self.input.queue(), now)
        {
            self.gates.push(next);
        }
    }

    /// Looks at what the next request is going to need, so that it is in the processor's cache at its deadline.
    #[inline]
    pub(super) fn prefetch(&mut self) {
        if let Some(next) = self.input.rehearsal() {
            self.tracker.prefetch(range_of(next));
        }
    }

    /// Lets go what is due.
    #[inline]
    pub(super) fn admit(&mut self, now: Nanos) {
        for gate in self.gates.turn() {
            self.admit_through(gate, now);
        }
    }

    #[inline]
    fn admit_through(&mut self, gate: usize, now: Nanos) {
        while self.staged.len() < self.limits.batch {
            let Some(next) = self.gates.get(gate).due.front() else { return };
            let skipped = next.skip.is_some();
            let range = range_of(next);
            if !self.output.has_room(self.in_flight + self.waiting + 1) {
                self.counters.completion_log_stalls += 1;
                return self.hold(gate, DelayReason::CompletionLog, now);
            }
            if skipped {
                self.leave_out(gate, now, |_| {});
                continue;
            }
            let DispatchQueue { ordinary, pushed_back, .. } = *self.gates.get(gate);
            if ordinary >= self.limits.depth || pushed_back >= self.limits.pushed_back {
                return self.hold(gate, DelayReason::Depth, now);
            }
            let slot = self.slots.next_free();
            match (self.tracker.admit(slot, range), self.policy) {
                (Verdict::Go, _) => {
                    self.occupy(gate, slot);
                    self.gates.get_mut(gate).ordinary += 1;
                    self.stage(slot);
                }
                (Verdict::Conflict, Policy::Partial) => {
                    self.occupy(gate, slot);
                    self.slots.get_mut(slot).record.pushed_back = true;
                    self.gates.get_mut(gate).pushed_back += 1;
                    self.waiting += 1;
                    self.counters.max_pushed_back = self.counters.max_pushed_back.max(self.waiting as u32);
                }
                (Verdict::Conflict, Policy::Drop) => {
                    self.counters.dropped += 1;
                    self.leave_out(gate, now, |record| record.outcome = Outcome::Dropped);
                }
                (Verdict::Conflict, _) => {
                    let is_new = !std::mem::replace(&mut self.gates.get_mut(gate).head_waits, true);
                    self.counters.ordered_waits += u64::from(is_new);
                    return self.hold(gate, DelayReason::Order, now);
                }
            }
        }
    }

    #[inline]
    fn hold(&mut self, gate: usize, by: DelayReason, now: Nanos) {
        self.gates.get_mut(gate).held = Some((by, now));
    }

    /// Puts the oldest request before a gate out without giving it to the target. In a closed loop, its client takes the
    /// next one.
    fn leave_out(&mut self, gate: usize, now: Nanos, why: impl FnOnce(&mut IoResult)) {
        let next = self.gates.take_head(gate);
        if let Some(clients) = &mut self.clients {
            clients.left_out(next.scheduled, now);
        }
        let mut record = next.record();
        why(&mut record);
        self.put_out(Slot::new(next, record));
    }

    /// Gives the oldest request before a gate its slot.
    #[inline]
    fn occupy(&mut self, gate: usize, slot: u32) {
        let next = self.gates.take_head(gate);
        let gate = self.gates.get_mut(gate);
        gate.head_waits = false;
        let mut record = next.record();
        if let Some(clients) = &mut self.clients {
            clients.occupy(slot, next.scheduled);
            record.scheduled = next.deadline;
        }
        if self.pace != Pace::AsFastAsPossible {
            record.delay_reason = match gate.held {
                Some((by, at)) if at >= next.deadline => by,
                _ if next.ready > next.deadline => DelayReason::Input,
                _ if self.clients.is_none() && next.deadline > next.scheduled => DelayReason::Perturbed,
                _ => DelayReason::None,
            };
        }
        self.slots.occupy(Slot::new(next, record));
    }

    /// Lets go what waited for an overlap that has gone, whatever else is due.
    #[inline]
    pub(super) fn release(&mut self) {
        while self.staged.len() < self.limits.batch {
            let Some(slot) = self.tracker.release() else { return };
            self.waiting -= 1;
            self.stage(slot);
        }
    }

    #[inline]
    fn stage(&mut self, slot: u32) {
        let Slot { buffer, target, record, .. } = self.slots.get_mut(slot);
        self.in_flight += 1;
        self.counters.max_in_flight = self.counters.max_in_flight.max(self.in_flight as u32);
        record.in_flight = self.in_flight as u32;
        record.waiting = (self.gates.due() + self.waiting) as u32;
        self.target.stage(Io {
            slot,
            // Iterations of a load are far fewer than 2^16, requests of one far fewer than 2^48.
            key: record.request ^ (u64::from(record.iteration) << 48),
            target: *target,
            op: record.op,
            flags: record.flags,
            offset: record.sector.bytes(),
            length: record.sectors.bytes(),
            buffer: buffer.as_ref(),
        });
        self.staged.push(slot);
    }

    /// Stages the reads of what was just written.
    #[inline]
    pub(super) fn read_again(&mut self) {
        while self.staged.len() < self.limits.batch {
            let Some(slot) = self.rereads.pop_front() else { return };
            let Slot { buffer, target, record, .. } = self.slots.get_mut(slot);
            self.target.stage(Io {
                slot,
                key: record.request,
                target: *target,
                op: Op::Read,
                flags: Flags::default(),
                offset: record.sector.bytes(),
                length: record.sectors.bytes(),
                buffer: buffer.as_ref(),
            });
            self.staged.push(slot);
        }
    }
}

fn range_of(planned: &PreparedIo) -> Range {
    Range {
        target: planned.target,
        sector: planned.sector.0,
        sectors: planned.sectors.0,
        modifies: planned.op.modifies(),
    }
}
