//! Descriptors that calls in flight will make: they exist from the end of the call.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use iosonar_trace::Nanos;

use super::ids::IdMap;
use super::processes::{Slot, TableId};

/// Descriptors that a call makes.
#[derive(Debug)]
pub(super) struct Binding {
    pub table: TableId,
    pub slots: Vec<(i32, Slot)>,
}

/// Calls in flight that make descriptors, in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// End, number, thread.
    ends: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    /// By number, so that searches find the oldest one.
    bindings: BTreeMap<u64, Binding>,
    /// The system call that a thread is in. Rings are not threads.
    of_thread: IdMap<u32, u64>,
    next: u64,
}

impl Pending {
    pub fn push(&mut self, end: Nanos, thread: u32, is_uring: bool, binding: Binding) {
        let number = self.next;
        self.next += 1;
        self.ends.push(Reverse((end, number, thread)));
        self.bindings.insert(number, binding);
        if !is_uring {
            self.of_thread.insert(thread, number);
        }
    }

    /// The next binding that happened up to `now`. A thread's own last call has ended before its next one, even if rounding
    /// of times says otherwise.
    pub fn pop(&mut self, now: Nanos, thread: u32) -> Option<Binding> {
        while let Some(&Reverse((end, number, of))) = self.ends.peek() {
            if end > now && self.bindings.contains_key(&number) {
                break;
            }
            self.ends.pop();
            if self.of_thread.get(&of) == Some(&number) {
                self.of_thread.remove(&of);
            }
            if let Some(binding) = self.bindings.remove(&number) {
                return Some(binding);
            }
        }
        let number = self.of_thread.remove(&thread)?;
        self.bindings.remove(&number)
    }

    /// Takes the call in flight that will make the descriptor: another thread uses it already.
    pub fn take(&mut self, table: TableId, fd: i32) -> Option<Binding> {
        let makes = |binding: &Binding| binding.table == table && binding.slots.iter().any(|(slot, _)| *slot == fd);
        let number = *self.bindings.iter().find(|(_, binding)| makes(binding))?.0;
        self.bindings.remove(&number)
    }
}
