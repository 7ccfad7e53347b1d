//! Flushes without data. They have no place, and the kernel makes one flush of all that wait when it gives one to the
//! device: that one's completion completes them all. The flush in front of a write, or behind it, is given to the device in
//! the same way, and nobody asked for it in an event of its own.

use std::collections::{BTreeMap, VecDeque};

use crate::model::request::DeviceId;

use super::event::MAX_WAITING;

/// The flushes of all devices, by number.
#[derive(Default)]
pub struct Flushes {
    devices: BTreeMap<DeviceId, OfDevice>,
}

#[derive(Default)]
struct OfDevice {
    /// Asked for, and not given to the device.
    waiting: VecDeque<u64>,
    issued: VecDeque<Issued>,
}

/// What was given to the device.
struct Issued {
    /// The flushes that it stands for; none if it belongs to a write.
    numbers: Vec<u64>,
    /// The number of the request that was next then.
    before: u64,
}

/// Flushes that a device has in flight: at most one for each of its queues.
const MAX_ISSUED: usize = 1024;

impl Flushes {
    /// One was asked for.
    pub fn ask(&mut self, device: DeviceId, number: u64) {
        let waiting = &mut self.devices.entry(device).or_default().waiting;
        waiting.push_back(number);
        if waiting.len() > MAX_WAITING {
            waiting.pop_front();
        }
    }

    /// A flush was given to the device, for all that wait: these. The next request will have the number `next`.
    pub fn issue_all(&mut self, device: DeviceId, next: u64) -> Vec<u64> {
        let of_device = self.devices.entry(device).or_default();
        let all: Vec<u64> = of_device.waiting.drain(..).collect();
        of_device.issue(Issued { numbers: all.clone(), before: next });
        all
    }

    /// A flush was given to the device, which is a request by itself.
    pub fn issue_one(&mut self, device: DeviceId, number: u64) {
        self.devices.entry(device).or_default().issue(Issued { numbers: vec![number], before: number + 1 });
    }

    /// The device did not take the last one that was given to it, which stood for these. They wait again, unless they were
    /// requests by themselves.
    pub fn take_back(&mut self, device: DeviceId, by_themselves: bool) -> Vec<u64> {
        let Some(of_device) = self.devices.get_mut(&device) else { return Vec::new() };
        let numbers = of_device.issued.pop_back().map_or_else(Vec::new, |issued| issued.numbers);
        if !by_themselves {
            numbers.iter().rev().for_each(|&number| of_device.waiting.push_front(number));
        }
        numbers
    }

    /// A flush was completed: these were. Completions of those before the number `doubtful` may have been lost.
    pub fn complete(&mut self, device: DeviceId, doubtful: u64) -> Vec<u64> {
        let Some(of_device) = self.devices.get_mut(&device) else { return Vec::new() };
        // Whoever lost a completion would else be one behind for ever.
        while of_device.issued.len() > 1 && of_device.issued[0].before <= doubtful && doubtful > 0 {
            of_device.issued.pop_front();
        }
        match of_device.issued.pop_front() {
            Some(issued) => issued.numbers,
            // Where only asking and completion are seen, it is the oldest.
            None => of_device.waiting.pop_front().into_iter().collect(),
        }
    }

    /// Nobody waits for it any longer.
    pub fn forget(&mut self, device: DeviceId, number: u64) {
        let Some(of_device) = self.devices.get_mut(&device) else { return };
        // It is among the oldest.
        of_device.waiting.retain(|&waiting| waiting != number);
        for issued in &mut of_device.issued {
            issued.numbers.retain(|&of_it| of_it != number);
        }
    }
}

impl OfDevice {
    fn issue(&mut self, issued: Issued) {
        self.issued.push_back(issued);
        if self.issued.len() > MAX_ISSUED {
            self.issued.pop_front();
        }
    }
}
