//! A simulated device: requests complete after known service times, without I/O.
//!
//! A service time depends only on the seed and the request, not on the time of issue, so that a load meets the same
//! device in every run. With a limited number of servers, further requests queue for the first free one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::Duration;

use iosonar_trace::Nanos;

use super::service::ServiceTimes;
use super::{Completion, Io, Target};
use crate::schedule::clock::Clock;

/// A simulated device.
#[derive(Debug)]
pub struct Simulate<C> {
    clock: C,
    service: ServiceTimes,
    /// When each server becomes free, earliest first; empty if their number is unlimited.
    servers: BinaryHeap<Reverse<Nanos>>,
    staged: Vec<(u32, i64, Nanos)>,
    /// Completion time, submission number, slot and result of each request, earliest first.
    in_flight: BinaryHeap<Reverse<(Nanos, u64, u32, i64)>>,
    count: u64,
}

impl<C: Clock> Simulate<C> {
    /// For at most `slots` requests in flight. `servers` is the number of requests served concurrently; `None` is
    /// unlimited.
    pub fn new(clock: C, service: ServiceTimes, servers: Option<u32>, slots: usize) -> Self {
        Self {
            clock,
            service,
            servers: (0..servers.unwrap_or(0)).map(|_| Reverse(Nanos(i64::MIN))).collect(),
            staged: Vec::with_capacity(slots),
            in_flight: BinaryHeap::with_capacity(slots),
            count: 0,
        }
    }
}

impl<C: Clock> Target for Simulate<C> {
    #[inline]
    fn stage(&mut self, io: Io<'_>) {
        let service_time = self.service.time(io.key, io.op, io.length);
        self.staged.push((io.slot, io.length as i64, service_time));
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        for (slot, result, service_time) in self.staged.drain(..) {
            let start = match self.servers.peek_mut() {
                Some(mut earliest) => {
                    let start = earliest.0.max(now);
                    // Dropping `earliest` restores the order of the heap.
                    earliest.0 = start + service_time;
                    start
                }
                None => now,
            };
            self.count += 1;
            self.in_flight.push(Reverse((start + service_time, self.count, slot, result)));
        }
        Ok(())
    }

    #[inline]
    fn reap(&mut self) -> Option<Completion> {
        let Reverse((at, ..)) = *self.in_flight.peek()?;
        if at > self.clock.now() {
            return None;
        }
        self.in_flight.pop().map(|Reverse((_, _, slot, result))| Completion { slot, result })
    }

    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        let next = self.in_flight.peek().map_or(timeout, |Reverse((at, ..))| (*at - self.clock.now()).min(timeout));
        if next > Nanos::ZERO {
            std::thread::sleep(Duration::from_nanos(next.0 as u64));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Flags, Op};

    use super::*;
    use crate::engine::mock::Time;
    use crate::engine::service::Distribution;

    /// Completion times, in half milliseconds, of ten requests that are submitted together and take 1 ms each.
    fn completion_times(servers: Option<u32>) -> Vec<i64> {
        let service = ServiceTimes::new(&Distribution::Constant(Nanos(1_000_000)), 1).unwrap();
        let mut target = Simulate::new(Time::starting_at(0), service, servers, 10);
        for slot in 0..10 {
            let io = Io {
                slot,
                key: u64::from(slot),
                target: 0,
                op: Op::Read,
                flags: Flags::NONE,
                offset: 0,
                length: 512,
                buffer: None,
            };
            target.stage(io);
        }
        target.submit().unwrap();
        let mut seen = Vec::new();
        for half_ms in 0..30 {
            // Submitting took 1 ns.
            target.clock = Time::starting_at(half_ms * 500_000 + 10);
            while let Some(completion) = target.reap() {
                assert_eq!(completion, Completion { slot: seen.len() as u32, result: 512 }, "first come, first served");
                seen.push(half_ms);
            }
        }
        seen
    }

    #[test]
    fn requests_complete_after_their_service_time_and_queue_for_servers() {
        assert_eq!(completion_times(None), [2; 10]);
        assert_eq!(completion_times(Some(20)), [2; 10]);
        assert_eq!(completion_times(Some(1)), (1..=10).map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(completion_times(Some(4)), [2, 2, 2, 2, 4, 4, 4, 4, 6, 6]);
    }
}
