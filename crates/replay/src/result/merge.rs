//! The completed requests of all issuing loops, in one order.
//!
//! Rows are in order of completion, and verification needs more: a write must come before every request that waited for it,
//! in whichever loop. A loop pushes a row before it lets other loops know. So, of two rows where the second waited for the
//! first, the first is in its queue before the second is issued. Each round takes the rows that completed before the round
//! began; what they waited for is then visible as well, and comes first, as it completed earlier.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosonar_pacing::clock::{Clock, Monotonic};
use iosonar_trace::Nanos;
use rtrb::Consumer;

use crate::io::CompletedIo;

/// Rows that completed this shortly before a round are left for the next one: a loop may not have pushed those of this time
/// yet.
const MARGIN: Nanos = Nanos(1_000_000);

/// Where the completion log reads.
pub enum Completions {
    /// One loop.
    One(Consumer<CompletedIo>),
    /// Several loops.
    Merged(Merge<Monotonic>),
}

impl From<Consumer<CompletedIo>> for Completions {
    fn from(queue: Consumer<CompletedIo>) -> Self {
        Self::One(queue)
    }
}

impl Completions {
    /// The next row, if there is one now and it is accepted. All rows of several loops are, as a thread records them.
    #[inline]
    pub fn next_if(&mut self, accept: impl FnOnce(&CompletedIo) -> bool) -> Option<CompletedIo> {
        match self {
            Self::One(queue) => queue.peek().is_ok_and(accept).then(|| queue.pop().ok()).flatten(),
            Self::Merged(merge) => merge.next(),
        }
    }

    /// Whether all loops have ended.
    pub fn is_abandoned(&self) -> bool {
        match self {
            Self::One(queue) => queue.is_abandoned(),
            Self::Merged(merge) => merge.queues.iter().all(Consumer::is_abandoned),
        }
    }

    /// Capacity of a queue.
    pub fn capacity(&self) -> usize {
        match self {
            Self::One(queue) => queue.buffer().capacity(),
            Self::Merged(merge) => merge.queues[0].buffer().capacity(),
        }
    }
}

/// Merges the queues of several loops.
pub struct Merge<C> {
    queues: Vec<Consumer<CompletedIo>>,
    clock: C,
    /// Rows of each queue that are left in this round.
    left: Vec<usize>,
    /// The first row of each queue that has any left, as its key and the queue.
    heads: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Rows that completed later are for another round.
    horizon: Nanos,
    is_in_round: bool,
}

impl<C: Clock> Merge<C> {
    /// Merges these queues, whose times are of this clock.
    pub fn new(queues: Vec<Consumer<CompletedIo>>, clock: C) -> Self {
        let count = queues.len();
        Self {
            queues,
            clock,
            left: vec![0; count],
            heads: BinaryHeap::with_capacity(count),
            horizon: Nanos::ZERO,
            is_in_round: false,
        }
    }

    /// The next row. `None` ends a round. Not inlined, so that the way from one loop stays short.
    #[inline(never)]
    fn next(&mut self) -> Option<CompletedIo> {
        if !self.is_in_round {
            self.begin_round();
        }
        let Some(Reverse((key, queue))) = self.heads.pop().filter(|&Reverse((key, _))| key <= self.horizon) else {
            self.is_in_round = false;
            return None;
        };
        debug_assert!(self.left[queue] > 0, "{key:?}");
        let completed = self.queues[queue].pop().ok();
        self.left[queue] -= 1;
        self.add_head(queue);
        completed
    }

    fn begin_round(&mut self) {
        // In this order: after all loops have ended, everything is visible; and what completed before the horizon is.
        let has_ended = self.queues.iter().all(Consumer::is_abandoned);
        self.horizon = if has_ended { Nanos::MAX } else { self.clock.now() - MARGIN };
        self.heads.clear();
        for queue in 0..self.queues.len() {
            self.left[queue] = self.queues[queue].slots();
            self.add_head(queue);
        }
        self.is_in_round = true;
    }

    fn add_head(&mut self, queue: usize) {
        if self.left[queue] > 0
            && let Ok(head) = self.queues[queue].peek()
        {
            self.heads.push(Reverse((key(head), queue)));
        }
    }
}

/// When a row was ready, in the order of its queue. One that was not issued comes at once, and one that never completed at
/// the end.
fn key(completed: &CompletedIo) -> Nanos {
    let CompletedIo { record, reread, .. } = completed;
    match (reread, record.completed, record.issued) {
        (Some(reread), ..) => reread.completed,
        (None, Some(completed), _) => completed,
        (None, None, Some(_)) => Nanos::MAX,
        (None, None, None) => Nanos(i64::MIN),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rtrb::{Producer, RingBuffer};

    use super::*;
    use crate::io::testing::write;

    struct At(Cell<i64>);

    impl Clock for &At {
        fn now(&self) -> Nanos {
            Nanos(self.0.get())
        }

        fn sleep(&self, _: Nanos) {}
    }

    fn push(queue: &mut Producer<CompletedIo>, request: u64, issued: Option<i64>, completed: Option<i64>) {
        let mut record = write(request, 0, 0, 8).record();
        (record.issued, record.completed) = (issued.map(Nanos), completed.map(Nanos));
        let done = CompletedIo {
            record,
            sequence_number: request + 1,
            issuer: 0,
            is_late_by_load: false,
            target: 0,
            admitted: 0,
            reread: None,
            buffer: None,
        };
        queue.push(done).unwrap();
    }

    #[test]
    fn rows_are_merged_in_order_of_completion_and_young_ones_wait() {
        let (clock, [(mut a, to_a), (mut b, to_b)]) = (At(Cell::new(0)), [(); 2].map(|()| RingBuffer::new(16)));
        let mut merge = Merge::new(vec![to_a, to_b], &clock);
        let mut round = || std::iter::from_fn(|| merge.next()).map(|done| done.record.request).collect::<Vec<_>>();
        let ms = 1_000_000;
        for (request, at) in [(0, 10), (1, 30), (2, 50)] {
            push(&mut a, request, Some(0), Some(at));
        }
        // Not issued: it comes as soon as it is the first of its queue.
        push(&mut b, 3, None, None);
        for (request, at) in [(4, 20), (5, 40)] {
            push(&mut b, request, Some(0), Some(at));
        }
        assert_eq!(round(), [3], "nothing else completed long enough ago");
        clock.0.set(ms + 40);
        assert_eq!(round(), [0, 4, 1, 5]);
        push(&mut a, 6, Some(0), None);
        push(&mut b, 7, Some(0), Some(45));
        clock.0.set(100 * ms);
        assert_eq!(round(), [7, 2], "what never completed comes at the end");
        push(&mut b, 8, Some(0), Some(200 * ms));
        assert_eq!(round(), [0; 0]);
        drop((a, b));
        assert_eq!(round(), [8, 6]);
    }
}
