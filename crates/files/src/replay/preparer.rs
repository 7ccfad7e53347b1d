//! Reads ahead: what the trace says becomes planned calls with the data of their writes, in a bounded queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use iosonar_pacing::Stop;
use iosonar_pacing::buffers::{Buffer, Pool};
use iosonar_pacing::payload::{Payload, Written};
use rtrb::{Consumer, Producer};

use super::error::Result;
use super::pause::Pause;
use super::prepared_call::PreparedCall;

/// Prepared calls one after another.
pub trait Source: Send {
    /// The next call; `None` at the end.
    ///
    /// # Errors
    /// If the trace cannot be read.
    fn next(&mut self) -> Result<Option<Box<PreparedCall>>>;

    /// Takes back a call that was recorded: its memory serves another one.
    fn recycle(&mut self, call: Box<PreparedCall>);

    /// States that all calls below this number have completed.
    fn forget_before(&mut self, _number: u64) {}
}

/// Reads ahead until the end, or a stop.
pub struct Preparer {
    /// What is read.
    pub source: Box<dyn Source>,
    /// Where to.
    pub to: Producer<Box<PreparedCall>>,
    /// Buffers of calls that have completed.
    pub returned: Consumer<Buffer>,
    /// Calls that have been recorded.
    pub spare: Consumer<Box<PreparedCall>>,
    /// Memory for the data of writes.
    pub pool: Pool,
    pub payload: Payload,
    /// Whether calls have times, so that frequent wake-ups could make them late.
    pub keeps_times: bool,
    /// Ends reading.
    pub stop: Arc<Stop>,
    /// The oldest call that has not completed.
    pub floor: Arc<AtomicU64>,
    /// The most data ahead of small writes.
    pub max_data: u64,
    /// Bytes of the buffers of calls that have not completed.
    pub held_bytes: u64,
    /// Bytes of the buffers that came back since the last sleep.
    pub returned_bytes: u64,
    /// Set when the calls ahead have so many predecessors, or so much data, that no more are read.
    pub is_full: Arc<AtomicBool>,
}

/// The most predecessors of all calls in the queue: of a trace with a million threads, each call may have a million.
const MAX_PREDECESSORS: usize = 1 << 23;

/// Large writes are slow anyway: so many of them may be ahead.
const LARGE_WRITES: u64 = 256;
/// Data may be needed so soon after a pause.
const DATA_PAUSE: Duration = Duration::from_millis(4);

/// The predecessors of the calls in the queue.
#[derive(Default)]
struct Ahead {
    of_calls: VecDeque<usize>,
    sum: usize,
}

impl Ahead {
    /// Adds a call, given the calls that are in the queue still; false if it must wait.
    fn has_room(&mut self, predecessors: usize, in_queue: usize) -> bool {
        while self.of_calls.len() > in_queue {
            self.sum -= self.of_calls.pop_front().unwrap_or(0);
        }
        let has_room = in_queue == 0 || self.sum + predecessors <= MAX_PREDECESSORS;
        if has_room {
            self.of_calls.push_back(predecessors);
            self.sum += predecessors;
        }
        has_room
    }
}

impl Preparer {
    /// Reads ahead. Returns the data that was generated.
    ///
    /// # Errors
    /// If the trace cannot be read.
    pub fn run(mut self) -> Result<Written> {
        let mut pause = Pause::new(self.to.buffer().capacity(), self.keeps_times);
        let (mut calls, mut ahead) = (0_u64, Ahead::default());
        while let Some(mut call) = self.source.next()? {
            calls += 1;
            if let Ok(call) = self.spare.pop() {
                self.source.recycle(call);
            }
            if calls.is_multiple_of(4096) {
                self.source.forget_before(self.floor.load(Ordering::Relaxed));
            }
            if !self.attach_data(&mut call, &mut pause) {
                break;
            }
            let predecessors = call.predecessors.as_slice().len();
            while !ahead.has_room(predecessors, self.to.buffer().capacity() - self.to.slots()) {
                self.is_full.store(true, Ordering::Relaxed);
                if self.stop.is_requested() || self.to.is_abandoned() {
                    return Ok(self.payload.written());
                }
                pause.sleep(self.to.slots());
            }
            loop {
                match self.to.push(call) {
                    Ok(()) => break,
                    Err(rtrb::PushError::Full(back)) => call = back,
                }
                if self.stop.is_requested() || self.to.is_abandoned() {
                    return Ok(self.payload.written());
                }
                pause.sleep(self.to.slots());
            }
        }
        Ok(self.payload.written())
    }

    /// Builds the data of a write. Returns false if the replay ends meanwhile.
    fn attach_data(&mut self, call: &mut PreparedCall, pause: &mut Pause) -> bool {
        let Some(action) = call.action.as_mut() else { return true };
        let bytes = action.data_bytes().min(self.pool.largest());
        if bytes == 0 {
            return true;
        }
        loop {
            while let Ok(buffer) = self.returned.pop() {
                self.held_bytes -= buffer.bytes();
                self.returned_bytes += buffer.bytes();
                self.pool.give(buffer);
            }
            let most = self.max_data.max(LARGE_WRITES.min(self.max_data >> 15) * bytes);
            let has_room = self.held_bytes == 0 || self.held_bytes + bytes <= most;
            if has_room && let Some(mut buffer) = self.pool.take(bytes) {
                self.held_bytes += buffer.bytes();
                let at = call.record.position.unwrap_or(0);
                let held = self.pool.arena().bytes_mut(&mut buffer, bytes);
                self.payload.fill_at(at, held);
                action.buffer = Some(buffer);
                return true;
            }
            // The replay must begin, or no buffer comes back.
            self.is_full.store(true, Ordering::Relaxed);
            if self.stop.is_requested() || self.to.is_abandoned() {
                return false;
            }
            // As many entries of the queue as the share of the data that came back.
            let found = self.returned_bytes * self.to.buffer().capacity() as u64 / most;
            self.returned_bytes = 0;
            pause.sleep_at_most(found as usize, DATA_PAUSE);
        }
    }
}
