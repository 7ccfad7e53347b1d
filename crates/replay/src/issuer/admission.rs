//! From the input to the target: issues due requests as depth and conflicts allow.

use iosonar_pacing::clock::Clock;
use iosonar_pacing::idle::Idle;
use iosonar_trace::{DelayReason, Flags, IoResult, Nanos, Op, Outcome};

use super::Issuer;
use super::shared_admission::Decision;
use super::slot::Slot;
use crate::engine::{Io, Target};
use crate::io::PreparedIo;
use crate::io::Share;
use crate::issuer::conflicts::{Admission, Policy, Range};
use crate::issuer::dispatch_queue::DispatchQueue;

impl<T: Target, C: Clock, I: Idle<T>> Issuer<'_, T, C, I> {
    /// Moves due requests from the input to the dispatch queues, so that they count as waiting.
    #[inline]
    pub(super) fn take_due(&mut self, now: Nanos) {
        if now >= self.limits.until {
            self.discard_due();
            self.is_past_end = true;
            return;
        }
        if self.clients.is_some() {
            return self.take_due_from_clients(now);
        }
        while let Some((deadline, target)) = self.input.peek()
            && deadline <= now
            && !self.queues.get(self.queues.index_of(target)).is_full()
            && let Some(next) = self.input.take()
        {
            self.queues.push(next);
        }
        if let Some(program) = &mut self.program {
            while !self.queues.is_any_full()
                && let Some(next) = program.next_due(now)
            {
                self.queues.push(next);
            }
        }
    }

    /// Like [`take_due`](Self::take_due), in a closed loop.
    fn take_due_from_clients(&mut self, now: Nanos) {
        while !self.queues.is_any_full()
            && let Some(clients) = &mut self.clients
            && let Some(next) = clients.next_due(self.input.queue(), now)
        {
            self.queues.push(next);
        }
    }

    /// Brings the conflict index entries of the next request into the processor's cache before its deadline.
    #[inline]
    pub(super) fn prefetch(&mut self) {
        if self.clients.is_none()
            && let Some(next) = self.input.next_to_prefetch()
        {
            self.tracker.prefetch(range_of(next));
        }
    }

    /// Stages due requests.
    #[inline]
    pub(super) fn admit_due(&mut self, now: Nanos) {
        self.sharing.begin_round();
        for queue in self.queues.round_robin() {
            self.admit_from(queue, now);
        }
    }

    #[inline]
    fn admit_from(&mut self, queue: usize, now: Nanos) {
        while self.staged.len() < self.limits.batch {
            let Some(next) = self.queues.get(queue).due.front() else { return };
            let skipped = next.skip.is_some();
            let (range, share) = (range_of(next), next.share);
            if let Some(share) = share.filter(Share::is_guard) {
                if self.admit_guard(queue, share, range) {
                    continue;
                }
                return;
            }
            if !self.output.has_room(self.in_flight + self.waiting + self.sharing.pending() + 1) {
                self.counters.completion_log_stalls += 1;
                return self.queues.get_mut(queue).hold_head(DelayReason::CompletionLog);
            }
            if skipped {
                self.skip(queue, now, |_| {});
                continue;
            }
            let DispatchQueue { places, pushed_back, .. } = self.queues.get(queue);
            if places.is_full() {
                return;
            }
            if *pushed_back >= self.limits.pushed_back {
                return self.queues.get_mut(queue).hold_head(DelayReason::Depth);
            }
            if let Some(share) = share.filter(|_| self.policy == Policy::Drop) {
                match self.decide(share, range) {
                    Decision::Wait => return,
                    Decision::Issue => {}
                    Decision::Drop => {
                        self.drop_head(queue, now);
                        continue;
                    }
                }
            }
            let slot = self.slots.next_free();
            match (self.tracker.admit(slot, range), self.policy) {
                (Admission::Issue, _) => {
                    self.occupy(queue, slot, now, false);
                    self.stage_or_await(slot);
                }
                (Admission::Conflict, Policy::Partial) => {
                    self.occupy(queue, slot, now, true);
                    self.queues.get_mut(queue).pushed_back += 1;
                    self.waiting += 1;
                    self.counters.max_pushed_back = self.counters.max_pushed_back.max(self.waiting as u32);
                }
                (Admission::Conflict, Policy::Drop) => self.drop_head(queue, now),
                (Admission::Conflict, _) => {
                    let is_first = !std::mem::replace(&mut self.queues.get_mut(queue).is_head_counted, true);
                    self.counters.ordered_waits += u64::from(is_first);
                    return self.queues.get_mut(queue).hold_head(DelayReason::Order);
                }
            }
        }
    }

    /// Leaves out the oldest request of a queue because of a conflict.
    fn drop_head(&mut self, queue: usize, now: Nanos) {
        self.counters.dropped += 1;
        self.skip(queue, now, |record| record.outcome = Outcome::Dropped);
    }

    /// Outputs the oldest request of a queue without issuing it. In a closed loop, its client takes the next request.
    fn skip(&mut self, queue: usize, now: Nanos, why: impl FnOnce(&mut IoResult)) {
        let next = self.queues.take_head(queue);
        if let Some(clients) = &mut self.clients {
            clients.skipped(next.scheduled, next.request, now);
        }
        let mut record = next.record();
        why(&mut record);
        let slot = Slot::new(next, record);
        if let (Some(program), Some(ticket)) = (&mut self.program, slot.ticket) {
            program.completed(ticket, &slot.record, now);
        }
        self.output_completed(slot);
    }

    /// Moves the oldest request of a queue into a slot.
    #[inline]
    fn occupy(&mut self, queue: usize, slot: u32, now: Nanos, is_pushed_back: bool) {
        let next = self.queues.take_head(queue);
        let queue = self.queues.get_mut(queue);
        queue.is_head_counted = false;
        let held = queue.admit_head(now, is_pushed_back);
        let mut record = next.record();
        record.pushed_back = is_pushed_back;
        if let Some(clients) = &mut self.clients {
            clients.assign(slot, next.scheduled);
            record.scheduled = next.deadline;
        }
        let mut admitted = Slot::new(next, record);
        admitted.held = held;
        self.slots.occupy(admitted);
    }

    /// Stages pushed-back requests whose conflicts are resolved, ahead of due requests.
    #[inline]
    pub(super) fn stage_released(&mut self) {
        while self.staged.len() < self.limits.batch {
            let Some(slot) = self.tracker.release() else { return };
            if self.sharing.agree_if_guard(slot) {
                continue;
            }
            self.waiting -= 1;
            self.stage_or_await(slot);
        }
    }

    #[inline]
    pub(super) fn stage(&mut self, slot: u32) {
        let Slot { buffer, target, record, .. } = self.slots.get_mut(slot);
        self.in_flight += 1;
        self.counters.max_in_flight = self.counters.max_in_flight.max(self.in_flight as u32);
        record.in_flight = self.in_flight as u32;
        record.waiting = (self.queues.due() + self.waiting) as u32;
        self.target.stage(Io {
            slot,
            // Iterations stay far below 2^16, request numbers far below 2^48.
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

    /// Stages the read-backs of completed writes.
    #[inline]
    pub(super) fn stage_rereads(&mut self) {
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

fn range_of(io: &PreparedIo) -> Range {
    Range { target: io.target, sector: io.sector.0, sectors: io.sectors.0, modifies: io.op.modifies() }
}
