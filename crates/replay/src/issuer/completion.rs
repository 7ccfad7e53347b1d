//! From the target to the output: what came back is noted, makes room for others, and goes to the completion log.

use iosonar_trace::Nanos;

use super::idle::Idle;
use super::slot::Slot;
use super::{Issuer, NEAR, SOME};
use crate::engine::{Completion, Target};
use crate::issuer::stall_monitor::Doing;
use crate::pipeline::io::CompletedIo;
use crate::schedule::clock::Clock;

impl<T: Target, C: Clock, I: Idle<T>> Issuer<'_, T, C, I> {
    /// Takes completions back while no deadline is near, or [`SOME`], where they make room for what is due. Returns whether
    /// there were any.
    #[inline]
    pub(super) fn look(&mut self, makes_room: bool) -> bool {
        let mut found = 0;
        let is_all = loop {
            let Some(completion) = self.target.reap() else { break true };
            let now = self.clock.now();
            self.last_look = now;
            self.complete(completion, now);
            found += 1;
            let is_enough = if makes_room { found == SOME } else { self.time_left(now) <= NEAR };
            if is_enough {
                break false;
            }
        };
        self.last_look = self.clock.now();
        if is_all {
            self.last_empty = self.last_look;
        }
        self.stall_monitor.passed(self.last_look, Doing::Reaping);
        self.stall_monitor.shows(self.in_flight);
        found > 0
    }

    #[inline]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        let Some(mut slot) = self.slots.take(completion.slot) else {
            // A completion for nothing in flight: a target's fault that must not end the run.
            debug_assert!(false, "unexpected {completion:?}");
            return;
        };
        match &mut slot.reread {
            None => {
                slot.end(completion.result, now, self.last_empty);
                if let Some(rereader) = &self.rereader
                    && rereader.wants(&mut slot)
                {
                    // It keeps its place, and what overlaps it waits on.
                    self.rereads.push_back(completion.slot);
                    self.slots.put_back(completion.slot, slot);
                    return;
                }
            }
            Some(reread) => (reread.completed, reread.result) = (now, completion.result),
        }
        self.in_flight -= 1;
        let gate = self.gates.get_mut(self.gates.of(slot.target));
        if slot.record.pushed_back {
            gate.pushed_back -= 1;
        } else {
            gate.ordinary -= 1;
        }
        self.slots.free(completion.slot);
        self.tracker.finish(completion.slot);
        if let Some(clients) = &mut self.clients {
            clients.completed(completion.slot, now);
        }
        self.put_out(slot);
    }

    /// Hands a request to the completion log.
    #[inline]
    pub(super) fn put_out(&mut self, through: Slot) {
        let Slot { buffer, sequence_number, target, record, reread } = through;
        self.output.put(CompletedIo {
            record,
            sequence_number,
            target,
            admitted: self.gates.admitted(),
            reread,
            buffer,
        });
    }
}
