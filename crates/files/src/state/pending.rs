//! Descriptors that calls in flight will make: they exist from the end of the call.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use foldhash::fast::FixedState;
use iosonar_trace::Nanos;

use super::processes::{Slot, TableId};
use crate::ids::IdMap;

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
    /// The bindings that make a descriptor, while there are many.
    makers: Option<HashMap<(TableId, i32), BTreeSet<u64>, FixedState>>,
    next: u64,
}

/// More bindings are found by hash: a damaged trace may have as many as threads.
const SEARCHED: usize = 64;

impl Pending {
    pub fn push(&mut self, end: Nanos, thread: u32, is_uring: bool, binding: Binding) {
        let number = self.next;
        self.next += 1;
        self.ends.push(Reverse((end, number, thread)));
        if let Some(makers) = &mut self.makers {
            note(makers, number, &binding);
        }
        self.bindings.insert(number, binding);
        if self.makers.is_none() && self.bindings.len() > SEARCHED {
            let makers = self.makers.insert(HashMap::default());
            self.bindings.iter().for_each(|(number, binding)| note(makers, *number, binding));
        }
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
            if let Some(binding) = self.remove(number) {
                return Some(binding);
            }
        }
        let number = self.of_thread.remove(&thread)?;
        self.remove(number)
    }

    /// Any binding, as if its call had ended.
    pub fn pop_any(&mut self) -> Option<Binding> {
        let number = *self.bindings.first_key_value()?.0;
        self.remove(number)
    }

    /// Takes the call in flight that will make the descriptor: another thread uses it already.
    pub fn take(&mut self, table: TableId, fd: i32) -> Option<Binding> {
        let makes = |binding: &Binding| binding.table == table && binding.slots.iter().any(|(slot, _)| *slot == fd);
        let number = match &self.makers {
            Some(makers) => *makers.get(&(table, fd))?.first()?,
            None => *self.bindings.iter().find(|(_, binding)| makes(binding))?.0,
        };
        self.remove(number)
    }

    fn remove(&mut self, number: u64) -> Option<Binding> {
        let binding = self.bindings.remove(&number)?;
        if self.bindings.is_empty() {
            self.makers = None;
        } else if let Some(makers) = &mut self.makers {
            for (fd, _) in &binding.slots {
                if let Entry::Occupied(mut entry) = makers.entry((binding.table, *fd)) {
                    entry.get_mut().remove(&number);
                    if entry.get().is_empty() {
                        entry.remove();
                    }
                }
            }
        }
        Some(binding)
    }
}

fn note(makers: &mut HashMap<(TableId, i32), BTreeSet<u64>, FixedState>, number: u64, binding: &Binding) {
    for (fd, _) in &binding.slots {
        makers.entry((binding.table, *fd)).or_default().insert(number);
    }
}
