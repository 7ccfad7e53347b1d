//! Flushes without data. They have no position, and the kernel issues all waiting flushes of a device as one: its
//! completion completes them all. The preflush of a write, or the flush after it, is issued in the same way, but was not
//! queued by an event of its own.

use std::collections::{BTreeMap, VecDeque};

use crate::model::request::DeviceId;

use super::event::MAX_PENDING;

/// The numbers of the flushes of all devices.
#[derive(Default)]
pub struct Flushes {
    devices: BTreeMap<DeviceId, DeviceFlushes>,
}

#[derive(Default)]
struct DeviceFlushes {
    /// Queued, not issued.
    waiting: VecDeque<u64>,
    issued: VecDeque<Issued>,
}

/// A flush that was issued to the device.
struct Issued {
    /// The queued flushes that it completes; none if it belongs to a write.
    numbers: Vec<u64>,
    /// The number of the next request at that time.
    before: u64,
}

/// Most flushes that a device has in flight: one for each of its queues.
const MAX_ISSUED: usize = 1024;

impl Flushes {
    /// Adds a queued flush.
    pub fn queue(&mut self, device: DeviceId, number: u64) {
        let waiting = &mut self.devices.entry(device).or_default().waiting;
        waiting.push_back(number);
        if waiting.len() > MAX_PENDING {
            waiting.pop_front();
        }
    }

    /// Notes the issue of a flush and returns all waiting flushes, which it completes. `next` is the number of the next
    /// request.
    pub fn issue_all(&mut self, device: DeviceId, next: u64) -> Vec<u64> {
        let of_device = self.devices.entry(device).or_default();
        let all: Vec<u64> = of_device.waiting.drain(..).collect();
        of_device.issue(Issued { numbers: all.clone(), before: next });
        all
    }

    /// Notes the issue of a flush that is a request itself.
    pub fn issue_one(&mut self, device: DeviceId, number: u64) {
        self.devices.entry(device).or_default().issue(Issued { numbers: vec![number], before: number + 1 });
    }

    /// Notes that the device requeued the last issued flush, and returns the numbers it completes. They wait again, unless
    /// issued flushes are requests themselves (`are_requests`).
    pub fn requeue(&mut self, device: DeviceId, are_requests: bool) -> Vec<u64> {
        let Some(of_device) = self.devices.get_mut(&device) else { return Vec::new() };
        let numbers = of_device.issued.pop_back().map_or_else(Vec::new, |issued| issued.numbers);
        if !are_requests {
            numbers.iter().rev().for_each(|&number| of_device.waiting.push_front(number));
        }
        numbers
    }

    /// Notes a completion and returns the completed flushes. The completions of flushes before the number `doubtful` may
    /// have been lost.
    pub fn complete(&mut self, device: DeviceId, doubtful: u64) -> Vec<u64> {
        let Some(of_device) = self.devices.get_mut(&device) else { return Vec::new() };
        // Else after one lost completion, every later one would complete the flush before its own.
        while of_device.issued.len() > 1 && of_device.issued[0].before <= doubtful && doubtful > 0 {
            of_device.issued.pop_front();
        }
        match of_device.issued.pop_front() {
            Some(issued) => issued.numbers,
            // In a trace without issues, the oldest one completes.
            None => of_device.waiting.pop_front().into_iter().collect(),
        }
    }

    /// Removes a flush that has not completed.
    pub fn remove(&mut self, device: DeviceId, number: u64) {
        let Some(of_device) = self.devices.get_mut(&device) else { return };
        of_device.waiting.retain(|&waiting| waiting != number);
        for issued in &mut of_device.issued {
            issued.numbers.retain(|&of_it| of_it != number);
        }
    }
}

impl DeviceFlushes {
    fn issue(&mut self, issued: Issued) {
        self.issued.push_back(issued);
        if self.issued.len() > MAX_ISSUED {
            self.issued.pop_front();
        }
    }
}
