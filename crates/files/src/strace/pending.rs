//! Calls whose end was not read yet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Call;
use crate::ids::IdMap;

/// Calls in flight.
#[derive(Default)]
pub struct Pending {
    by_thread: IdMap<u32, Started>,
    /// The threads by the numbers of their calls. Those that ended are removed late.
    oldest: BinaryHeap<Reverse<(u64, u32)>>,
    /// Bytes of all arguments.
    bytes: usize,
    /// Buffers for arguments.
    spare: Vec<Vec<u8>>,
}

/// A call in flight.
pub struct Started {
    /// Its number in the order of begins.
    pub number: u64,
    /// The line on which it began.
    pub line: u64,
    /// Without arguments and result.
    pub call: Call,
    /// The arguments so far.
    pub text: Vec<u8>,
}

/// Buffers that are kept.
const MAX_SPARE: usize = 256;
/// Bytes of a buffer that is kept.
const MAX_SPARE_BYTES: usize = 4096;

impl Pending {
    /// Adds a call. The thread has no other one in flight.
    pub fn begin(&mut self, number: u64, line: u64, call: Call, text: &[u8]) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(text);
        self.bytes += text.len();
        self.oldest.push(Reverse((number, call.thread)));
        self.by_thread.insert(call.thread, Started { number, line, call, text: buffer });
        if self.oldest.len() > 2 * self.by_thread.len() + 64 {
            let Self { oldest, by_thread, .. } = self;
            oldest.retain(|Reverse((number, thread))| {
                by_thread.get(thread).is_some_and(|started| started.number == *number)
            });
        }
    }

    /// Appends to the arguments of a thread's call. Returns whether there is one.
    pub fn extend(&mut self, thread: u32, text: &[u8]) -> bool {
        let Some(started) = self.by_thread.get_mut(&thread) else { return false };
        started.text.extend_from_slice(text);
        self.bytes += text.len();
        true
    }

    /// Removes the call of a thread.
    pub fn end(&mut self, thread: u32) -> Option<Started> {
        if self.by_thread.is_empty() {
            return None;
        }
        let started = self.by_thread.remove(&thread)?;
        self.bytes -= started.text.len();
        Some(started)
    }

    /// Gives back the buffer of a call that was removed.
    pub fn recycle(&mut self, mut text: Vec<u8>) {
        if self.spare.len() < MAX_SPARE && text.capacity() <= MAX_SPARE_BYTES {
            text.clear();
            self.spare.push(text);
        }
    }

    /// The call of one thread goes on under the number of another one.
    pub fn rename(&mut self, from: u32, to: u32) {
        if let Some(started) = self.by_thread.remove(&from) {
            if let Some(replaced) = self.by_thread.remove(&to) {
                self.bytes -= replaced.text.len();
            }
            self.oldest.push(Reverse((started.number, to)));
            self.by_thread.insert(to, started);
        }
    }

    /// The number and thread of the oldest call in flight.
    pub fn oldest(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((number, thread))) = self.oldest.peek() {
            if self.by_thread.get(&thread).is_some_and(|started| started.number == number) {
                return Some((number, thread));
            }
            self.oldest.pop();
        }
        None
    }

    /// How many calls are in flight, and the bytes of their arguments.
    pub fn size(&self) -> (usize, usize) {
        (self.by_thread.len(), self.bytes)
    }
}
