//! The times of the latest calls that have completed, for calls that are read later and follow them.

use iosonar_trace::Nanos;

/// When a call began and ended, in the replay and in the trace.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub number: u64,
    /// Its begin in the replay.
    pub begin: Nanos,
    /// Its end in the replay.
    pub end: Nanos,
    /// What the replayer itself had lost when it began, and when it ended.
    pub lost: [Nanos; 2],
    pub begin_in_trace: Nanos,
    pub end_in_trace: Nanos,
    pub thread: u32,
}

/// The times of the latest calls by their numbers.
#[derive(Debug)]
pub struct History {
    times: Vec<Times>,
    /// How many calls are remembered. A call that follows an older one was ready long ago.
    most: usize,
}

impl History {
    /// No calls, and later at most so many.
    pub fn new(most: usize) -> Self {
        Self { times: Vec::new(), most }
    }

    /// Remembers a call.
    pub fn put(&mut self, times: Times) {
        let at = times.number as usize % self.most;
        if at < self.times.len() {
            self.times[at] = times;
            return;
        }
        // Calls complete out of order, but not far from it.
        let none = Times { number: u64::MAX, ..times };
        self.times.resize((at + 1).next_power_of_two().min(self.most), none);
        self.times[at] = times;
    }

    /// The times of a call, if it is remembered.
    pub fn get(&self, number: u64) -> Option<Times> {
        self.times.get(number as usize % self.most).filter(|times| times.number == number).copied()
    }
}
