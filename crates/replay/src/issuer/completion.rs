//! From the target to the output: records completions, frees slots and depth, and passes requests to the completion log.

use iosonar_pacing::clock::Clock;
use iosonar_pacing::idle::Idle;
use iosonar_pacing::stalls::Activity;
use iosonar_trace::Nanos;

use super::slot::Slot;
use super::{Issuer, READING, REAP_BATCH};
use crate::engine::{Completion, Target};

impl<T: Target, C: Clock, I: Idle<T>> Issuer<'_, T, C, I> {
    /// Reaps completions, until a deadline is near, or at most [`REAP_BATCH`] if they free slots for due requests. Returns
    /// whether there were any. `now` is the last reading of the clock.
    #[inline]
    pub(super) fn reap_completions(&mut self, now: Nanos, frees_slots: bool) -> bool {
        let mut found = 0;
        // A poll is not later than this: a reading after it could be after a stall.
        let mut polled = now;
        let mut at_hand = 0;
        let found_all = loop {
            let Some(completion) = self.target.reap() else { break true };
            if at_hand == 0 {
                // Before the reading: what is there by then can have its time.
                at_hand = self.target.at_hand().min(READING);
                polled = self.clock.now();
            } else {
                at_hand -= 1;
            }
            let now = polled;
            self.complete(completion, now);
            found += 1;
            let stop =
                if frees_slots { found == REAP_BATCH } else { self.time_to_next_issue(now) <= I::DEADLINE_MARGIN };
            if stop {
                break false;
            }
        };
        self.last_poll = self.clock.now();
        if found_all {
            self.last_empty_poll = polled;
            self.stall_monitor.found_none();
        }
        self.stall_monitor.record(self.last_poll, Activity::Reaping);
        self.stall_monitor.set_in_flight(self.in_flight);
        found > 0
    }

    /// Works on the request in its slot: it is large, and is copied once, into the output.
    #[inline]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        let Some(slot) = self.slots.find_mut(completion.slot) else {
            // A fault of the target, which must not end the run.
            debug_assert!(false, "unexpected {completion:?}");
            return;
        };
        if let Some(at) = completion.issued.and_then(|at| self.clock.of_monotonic(at)) {
            slot.mark_issued_by_engine(at, self.pace);
        }
        match &mut slot.reread {
            None => {
                slot.complete(completion.result, now, self.last_empty_poll);
                if let Some(rereader) = &self.rereader
                    && rereader.prepare_reread(slot)
                {
                    // It keeps its slot, and overlapping requests keep waiting.
                    self.rereads.push_back(completion.slot);
                    return;
                }
            }
            Some(reread) => (reread.completed, reread.result) = (now, completion.result),
        }
        self.in_flight -= 1;
        let seen = self.stall_monitor.earliest(now, slot.blind()).max(self.last_empty_poll);
        let end = slot.end(now, seen);
        self.queues.get_mut(self.queues.index_of(slot.target)).release(slot.record.pushed_back, end);
        let before = self.tracker.released();
        self.tracker.finish(completion.slot);
        for waiting in before..self.tracker.released() {
            if let Some(released) = self.slots.find_mut(self.tracker.released_at(waiting)) {
                released.overlap = end;
            }
        }
        let slot = self.slots.get_mut(completion.slot);
        if let Some(clients) = &mut self.clients {
            clients.completed(completion.slot, slot.record.request, now);
        }
        if let (Some(program), Some(ticket)) = (&mut self.program, slot.ticket) {
            program.completed(ticket, &slot.record, now);
        }
        let share = slot.share.take();
        let admitted = self.sharing.admitted(self.queues.admitted());
        self.output.push(slot.completed(self.sharing.issuer(), admitted));
        self.slots.vacate(completion.slot);
        if let Some(share) = share {
            self.sharing.finish(share);
        }
    }

    /// Passes a request that never had a slot to the completion log.
    pub(super) fn output_completed(&mut self, mut slot: Slot) {
        let share = slot.share.take();
        let admitted = self.sharing.admitted(self.queues.admitted());
        self.output.push(slot.completed(self.sharing.issuer(), admitted));
        if let Some(share) = share {
            self.sharing.finish(share);
        }
    }
}
