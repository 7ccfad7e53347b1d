//! A simulated device: requests complete at computed times, without I/O.
//!
//! The times depend only on the seed, the requests, and the times of their arrival, so that in virtual time a load meets the
//! same device in every run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use iosonar_pacing::clock::Clock;
use iosonar_pacing::idle::Waiter;
use iosonar_trace::Nanos;

use self::device::Device;
use self::law::Arrival;
use super::{Completion, Io, Target};

mod asymmetry;
mod collapse;
pub mod description;
pub mod device;
mod first_write;
mod garbage_collection;
pub mod law;
mod limit;
mod medium;
pub mod presets;
mod read_cache;
mod scheduler;
mod seek;
pub mod simulation;
mod stall;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod unwritten;
pub mod values;
mod write_cache;
mod written;

/// A simulated device.
#[derive(Debug)]
pub struct Simulate<C> {
    clock: C,
    device: Device,
    staged: Vec<(u32, Arrival)>,
    /// Completion time, submission number, slot and result of each request, earliest first.
    in_flight: BinaryHeap<Reverse<(Nanos, u64, u32, i64)>>,
    count: u64,
}

impl<C: Clock> Simulate<C> {
    /// For at most `slots` requests in flight.
    pub fn new(clock: C, device: Device, slots: usize) -> Self {
        Self { clock, device, staged: Vec::with_capacity(slots), in_flight: BinaryHeap::with_capacity(slots), count: 0 }
    }
}

impl<C: Clock> Simulate<C> {
    /// The device's scheduler hands waiting requests to its servers.
    fn take_waiting(&mut self, now: Nanos) {
        while let Some((slot, length, end)) = self.device.take_waiting(now) {
            self.count += 1;
            self.in_flight.push(Reverse((end, self.count, slot, length as i64)));
        }
    }
}

impl<C: Clock> Target for Simulate<C> {
    #[inline]
    fn stage(&mut self, io: Io<'_>) {
        let Io { slot, key, op, flags, offset, length, .. } = io;
        self.staged.push((slot, Arrival { at: Nanos::ZERO, key, op, flags, offset, length, in_device: 0 }));
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        for (slot, arrival) in self.staged.drain(..) {
            if let Some(end) = self.device.arrive(slot, &Arrival { at: now, ..arrival }) {
                self.count += 1;
                self.in_flight.push(Reverse((end, self.count, slot, arrival.length as i64)));
            }
        }
        self.take_waiting(now);
        Ok(())
    }

    #[inline]
    fn reap(&mut self) -> Option<Completion> {
        if self.device.schedules() {
            self.take_waiting(self.clock.now());
        }
        let Reverse((at, ..)) = *self.in_flight.peek()?;
        if at > self.clock.now() {
            return None;
        }
        self.in_flight.pop().map(|Reverse((_, _, slot, result))| Completion { slot, result, issued: None })
    }
}

impl<C: Clock> Waiter for Simulate<C> {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        let completion = self.in_flight.peek().map(|Reverse((at, ..))| *at);
        match completion.into_iter().chain(self.device.next_taken()).min() {
            Some(next) => self.clock.sleep((next - self.clock.now()).min(timeout).max(Nanos::ZERO)),
            None if timeout < Nanos::MAX => self.clock.sleep(timeout),
            None => {}
        }
        Ok(())
    }
}
