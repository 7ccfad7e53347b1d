//! A target that takes a stated time for each request and moves nothing: a device of which everything is known.
//!
//! How long a request takes depends on the seed and on which request it is, never on when it comes: the same load meets
//! the same device in every run. With a number of servers, requests beyond that queue up for the first that is free.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::time::Duration;

use iosonar_trace::Nanos;

use super::service::Service;
use super::{Completion, Io, Target};
use crate::schedule::clock::Clock;

/// A simulated device.
#[derive(Debug)]
pub struct Simulate<C> {
    clock: C,
    service: Service,
    /// When each server is free, soonest first; empty where there is one for each request.
    servers: BinaryHeap<Reverse<Nanos>>,
    staged: Vec<(u32, i64, Nanos)>,
    /// When each request is through, soonest first; among equals, the one that came first.
    flying: BinaryHeap<Reverse<(Nanos, u64, u32, i64)>>,
    count: u64,
}

impl<C: Clock> Simulate<C> {
    /// For at most `slots` requests in flight. `servers` work at once; `None` is as many as there are requests.
    pub fn new(clock: C, service: Service, servers: Option<u32>, slots: usize) -> Self {
        Self {
            clock,
            service,
            servers: (0..servers.unwrap_or(0)).map(|_| Reverse(Nanos(i64::MIN))).collect(),
            staged: Vec::with_capacity(slots),
            flying: BinaryHeap::with_capacity(slots),
            count: 0,
        }
    }
}

impl<C: Clock> Target for Simulate<C> {
    #[inline]
    fn stage(&mut self, io: Io<'_>) {
        let takes = self.service.time(io.key, io.op, io.length);
        self.staged.push((io.slot, io.length as i64, takes));
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        for (slot, result, takes) in self.staged.drain(..) {
            let begins = match self.servers.peek_mut() {
                Some(mut soonest) => {
                    let begins = soonest.0.max(now);
                    // Let go of, it moves to its new place.
                    soonest.0 = begins + takes;
                    begins
                }
                None => now,
            };
            self.count += 1;
            self.flying.push(Reverse((begins + takes, self.count, slot, result)));
        }
        Ok(())
    }

    #[inline]
    fn reap(&mut self) -> Option<Completion> {
        let Reverse((at, ..)) = *self.flying.peek()?;
        if at > self.clock.now() {
            return None;
        }
        self.flying.pop().map(|Reverse((_, _, slot, result))| Completion { slot, result })
    }

    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        let next = self.flying.peek().map_or(timeout, |Reverse((at, ..))| (*at - self.clock.now()).min(timeout));
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
    use crate::engine::service::Law;

    /// Times at which ten requests, staged at once, are through on so many servers of 1 ms each.
    fn through(servers: Option<u32>) -> Vec<i64> {
        let service = Service::new(&Law::Constant(Nanos(1_000_000)), 1).unwrap();
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
            // The submission took a nanosecond of it.
            target.clock = Time::starting_at(half_ms * 500_000 + 10);
            while let Some(completion) = target.reap() {
                assert_eq!(completion, Completion { slot: seen.len() as u32, result: 512 }, "first come, first served");
                seen.push(half_ms);
            }
        }
        seen
    }

    #[test]
    fn nothing_is_through_before_its_time_and_servers_take_turns() {
        assert_eq!(through(None), [2; 10]);
        assert_eq!(through(Some(20)), [2; 10]);
        assert_eq!(through(Some(1)), (1..=10).map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(through(Some(4)), [2, 2, 2, 2, 4, 4, 4, 4, 6, 6]);
    }
}
