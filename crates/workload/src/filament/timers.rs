//! Pending timers and messages, by time: a heap of four children each whose entries can be removed.

use iosonar_trace::Nanos;

use super::FilamentId;

/// Identifies a timer, to cancel it. It is never reused for another timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerId {
    entry: u32,
    generation: u32,
}

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Start,
    Timer,
    Message { from: FilamentId, value: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Nanos,
    /// Breaks ties: events of the same time occur in the order in which they were asked for.
    order: u64,
    /// Whom it wakes.
    to: FilamentId,
    due: Due,
    /// Its place in `heap`; `FREE` if the entry is not used.
    place: u32,
    generation: u32,
}

const FREE: u32 = u32::MAX;
const CHILDREN: usize = 4;

/// The heap. It allocates only when it holds more entries than ever before, or than reserved.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: Vec<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// How many there may be at a time.
    most: usize,
    submitted: u64,
}

impl Timers {
    /// Makes room for so many more entries than before.
    /// Allocates for what will be reserved later.
    pub fn make_room(&mut self, more: usize) {
        self.heap.reserve_exact(more);
        self.free.reserve_exact(more);
        self.entries.reserve_exact(more);
    }

    pub fn reserve(&mut self, more: usize) {
        self.most += more;
        for list in [&mut self.heap, &mut self.free] {
            list.reserve(self.most - list.len());
        }
        self.entries.reserve(self.most - self.entries.len());
    }

    /// When the first event is due.
    #[inline]
    pub fn first(&self) -> Option<Nanos> {
        self.heap.first().map(|&entry| self.entries[entry as usize].at)
    }

    /// Adds an event.
    pub fn push(&mut self, at: Nanos, to: FilamentId, due: Due) -> TimerId {
        let order = self.submitted;
        self.submitted += 1;
        let place = self.heap.len() as u32;
        let entry = match self.free.pop() {
            Some(entry) => {
                let generation = self.entries[entry as usize].generation;
                self.entries[entry as usize] = Entry { at, order, to, due, place, generation };
                entry
            }
            None => {
                self.entries.push(Entry { at, order, to, due, place, generation: 0 });
                self.entries.len() as u32 - 1
            }
        };
        self.heap.push(entry);
        self.sift_up(place as usize);
        TimerId { entry, generation: self.entries[entry as usize].generation }
    }

    /// Removes the first event, if it is due: its time, whom it wakes, and what it is.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, FilamentId, Due, TimerId)> {
        let &first = self.heap.first()?;
        let Entry { at, to, due, generation, .. } = self.entries[first as usize];
        if at > now {
            return None;
        }
        self.remove(first);
        Some((at, to, due, TimerId { entry: first, generation }))
    }

    /// Removes a timer. Returns false if it has passed or was cancelled, or if it is a timer of another filament.
    pub fn cancel(&mut self, timer: TimerId, of: FilamentId) -> bool {
        let is_pending = self.entries.get(timer.entry as usize).is_some_and(|entry| {
            entry.place != FREE && entry.generation == timer.generation && entry.to == of && entry.due == Due::Timer
        });
        if is_pending {
            self.remove(timer.entry);
        }
        is_pending
    }

    fn remove(&mut self, entry: u32) {
        let place = self.entries[entry as usize].place as usize;
        self.heap.swap_remove(place);
        if let Some(&moved) = self.heap.get(place) {
            self.entries[moved as usize].place = place as u32;
            self.sift_up(place);
            self.sift_down(self.entries[moved as usize].place as usize);
        }
        let removed = &mut self.entries[entry as usize];
        removed.place = FREE;
        removed.generation = removed.generation.wrapping_add(1);
        self.free.push(entry);
    }

    fn key(&self, place: usize) -> (Nanos, u64) {
        let Entry { at, order, .. } = self.entries[self.heap[place] as usize];
        (at, order)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.entries[self.heap[a] as usize].place = a as u32;
        self.entries[self.heap[b] as usize].place = b as u32;
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.key(parent) <= self.key(place) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let children = (place * CHILDREN + 1)..(place * CHILDREN + 1 + CHILDREN).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.key(child)) else { return };
            if self.key(place) <= self.key(least) {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(time: i64) -> Nanos {
        Nanos(time)
    }

    #[test]
    fn a_cancelled_timer_and_its_id_never_come_back() {
        let (me, other) = (FilamentId(1), FilamentId(2));
        let mut timers = Timers::default();
        let first = timers.push(at(5), me, Due::Timer);
        let second = timers.push(at(3), me, Due::Timer);
        assert!(!timers.cancel(first, other), "a timer of another filament");
        assert!(timers.cancel(second, me) && !timers.cancel(second, me));
        let third = timers.push(at(4), me, Due::Timer);
        assert!(!timers.cancel(second, me), "the entry is used again");
        assert_eq!(timers.pop_due(at(3)), None);
        assert_eq!(timers.pop_due(at(9)), Some((at(4), me, Due::Timer, third)));
        assert_eq!(timers.pop_due(at(9)), Some((at(5), me, Due::Timer, first)));
        assert!(!timers.cancel(first, me), "it has passed");
        assert_eq!(timers.first(), None);
    }

    proptest! {
        /// Events occur in the order of their times, then in the order in which they were asked for; cancelled ones never do.
        #[test]
        fn events_occur_in_order(steps in prop::collection::vec((0..50_i64, 0..4_u8), 1..300)) {
            let mut timers = Timers::default();
            let mut model: Vec<(i64, usize, TimerId)> = Vec::new();
            let me = FilamentId(0);
            for (number, (time, what)) in steps.into_iter().enumerate() {
                match what {
                    0 if !model.is_empty() => {
                        let (.., id) = model.swap_remove(time as usize % model.len());
                        prop_assert!(timers.cancel(id, me));
                    }
                    1 => {
                        let first = model.iter().min_by_key(|(at, number, _)| (*at, *number)).copied();
                        model.retain(|entry| Some(entry.1) != first.map(|first| first.1));
                        let popped = timers.pop_due(Nanos::MAX);
                        prop_assert_eq!(popped.map(|(at, .., id)| (at.0, id)), first.map(|(at, _, id)| (at, id)));
                    }
                    _ => model.push((time, number, timers.push(at(time), me, Due::Timer))),
                }
                prop_assert_eq!(timers.first().map(|at| at.0), model.iter().map(|entry| entry.0).min());
            }
        }
    }
}
