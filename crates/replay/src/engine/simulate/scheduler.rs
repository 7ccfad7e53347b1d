//! A scheduler before the medium: it chooses which of the waiting requests a server takes, and may leave the server idle for
//! a request that continues the last read.
//!
//! As CFQ and BFQ did for disks: after a read, the next one of the same program is probably near, so that waiting for it is
//! cheaper than seeking away. A load that never continues pays for each wait.

use iosonar_trace::params::{Key, Section, Takes};
use iosonar_trace::{Nanos, Op};

use super::law::{Arrival, Passage};
use super::values::Time;

/// Settings of the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerSettings {
    /// Whether a server takes the next waiting request by position instead of the first one.
    pub sort: bool,
    /// How long a server that did a read waits for one that continues it; zero unless set.
    pub idle: Time,
}

impl SchedulerSettings {
    pub const KEYS: &[Key] = &[
        Key::new("sort", Takes::Flag, "Whether waiting requests are served by position, upwards (default false)"),
        Key::new("idle", Takes::Number, "How long the server waits after a read for one that continues it (default 0)"),
    ];

    /// Reads its table.
    ///
    /// # Errors
    /// With the line and the key.
    pub fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        Ok(Self {
            sort: section.flag("sort")?.unwrap_or(false),
            idle: section.parsed("idle", Time::parse)?.unwrap_or(Time(Nanos::ZERO)),
        })
    }
}

/// A request that no server has taken yet.
#[derive(Debug)]
pub struct Waiting {
    pub slot: u32,
    pub arrival: Arrival,
    pub passage: Passage,
}

/// Requests that wait for a server.
#[derive(Debug)]
pub struct Scheduler {
    settings: SchedulerSettings,
    /// In the order of their arrival; at most as many as the replay has in flight.
    waiting: Vec<Waiting>,
    /// Where the last request ended.
    head: u64,
    /// Until then, the server is kept for a read at `head`.
    kept_until: Nanos,
}

impl Scheduler {
    /// For at most `slots` requests.
    pub fn new(settings: &SchedulerSettings, slots: usize) -> Self {
        let waiting = Vec::with_capacity(slots);
        Self { settings: settings.clone(), waiting, head: 0, kept_until: Nanos(i64::MIN) }
    }

    /// How many requests wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A request arrives.
    pub fn add(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// When the next request is taken if no other arrives until then; `free` is when a server is free.
    pub fn next(&self, free: Nanos) -> Option<Nanos> {
        let of = |waiting: &Waiting| free.max(waiting.passage.start).max(self.kept_for(waiting));
        self.waiting.iter().map(of).min()
    }

    /// Takes the request to be served at `at`, a time from [`next`](Self::next).
    pub fn take(&mut self, at: Nanos) -> Option<Waiting> {
        let ready = |&(_, waiting): &(usize, &Waiting)| waiting.passage.start.max(self.kept_for(waiting)) <= at;
        let mut ready = self.waiting.iter().enumerate().filter(ready);
        let (place, _) = if self.settings.sort {
            // Upwards from the head, then again from the lowest one.
            ready.min_by_key(|(_, waiting)| (waiting.arrival.offset < self.head, waiting.arrival.offset))?
        } else {
            ready.next()?
        };
        Some(self.waiting.remove(place))
    }

    /// The taken request completes at `end`.
    pub fn taken(&mut self, arrival: &Arrival, end: Nanos) {
        self.head = arrival.offset + arrival.length;
        self.kept_until = if arrival.op == Op::Read { end + self.settings.idle.0 } else { end };
    }

    fn kept_for(&self, waiting: &Waiting) -> Nanos {
        let continues = waiting.arrival.op == Op::Read && waiting.arrival.offset == self.head;
        if continues || self.settings.idle.0 == Nanos::ZERO { Nanos(i64::MIN) } else { self.kept_until }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::arrival;
    use super::*;

    fn scheduler(sort: bool, idle: i64, blocks: &[u64]) -> Scheduler {
        let mut scheduler = Scheduler::new(&SchedulerSettings { sort, idle: Time(Nanos(idle)) }, 8);
        for (slot, block) in (0..).zip(blocks) {
            let arrival = arrival(0, Op::Read, *block);
            scheduler.add(Waiting { slot, arrival, passage: Passage::starting(Nanos(0)) });
        }
        scheduler
    }

    /// The blocks in the order in which one server takes them, each for 10.
    fn order(mut scheduler: Scheduler) -> Vec<(i64, u64)> {
        let mut free = Nanos(0);
        std::iter::from_fn(|| {
            let at = scheduler.next(free)?;
            let taken = scheduler.take(at).expect("it is time for one");
            free = at + Nanos(10);
            scheduler.taken(&taken.arrival, free);
            Some((at.0, taken.arrival.offset / 4096))
        })
        .collect()
    }

    #[test]
    fn sorted_requests_are_taken_upwards_from_the_head() {
        let mut sorted = scheduler(true, 0, &[5, 1, 7, 3]);
        sorted.head = 4 * 4096;
        assert_eq!(order(sorted), [(0, 5), (10, 7), (20, 1), (30, 3)]);
        assert_eq!(order(scheduler(false, 0, &[5, 1, 7])), [(0, 5), (10, 1), (20, 7)]);
    }

    #[test]
    fn a_read_that_continues_needs_no_idle_time_and_passes_others() {
        assert_eq!(order(scheduler(false, 100, &[5, 1, 6])), [(0, 5), (10, 6), (120, 1)]);
    }
}
