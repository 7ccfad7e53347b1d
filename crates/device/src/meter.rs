//! Reads the device's counters during a run: requests, and mean requests in flight.

use std::fs;
use std::time::Instant;

use iosonar_trace::run_info::DeviceCounters;

use super::sysfs;

/// A device's counters at the start of a run.
#[derive(Debug)]
pub struct Meter {
    rdev: u64,
    disk: String,
    before: Counters,
    since: Instant,
}

/// Sums over reads, writes, discards and flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    requests: u64,
    merged: u64,
    busy_ms: u64,
}

impl Meter {
    /// Starts counting; `None` for a device without counters.
    pub fn start(rdev: u64) -> Option<Self> {
        let disk = sysfs::disk_name(rdev)?;
        Some(Self { rdev, disk, before: counters(rdev)?, since: Instant::now() })
    }

    /// The counts since the start; `None` if the kernel's statistics are off (`queue/iostats`).
    pub fn read(&self) -> Option<DeviceCounters> {
        let (after, before) = (counters(self.rdev)?, self.before);
        if sysfs::queue(self.rdev, "iostats").as_deref() == Some("0") {
            return None;
        }
        Some(DeviceCounters {
            disk: self.disk.clone(),
            requests: after.requests.saturating_sub(before.requests),
            merged: after.merged.saturating_sub(before.merged),
            busy_s: after.busy_ms.saturating_sub(before.busy_ms) as f64 / 1e3,
            seconds: self.since.elapsed().as_secs_f64(),
        })
    }
}

fn counters(rdev: u64) -> Option<Counters> {
    parse(&fs::read_to_string(sysfs::directory(rdev).join("stat")).ok()?)
}

/// The fields of the kernel's Documentation/block/stat.rst. Older kernels lack discards and flushes.
fn parse(text: &str) -> Option<Counters> {
    let fields: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let at = |index: usize| fields.get(index).copied();
    Some(Counters {
        requests: at(0)? + at(4)? + at(11).unwrap_or(0) + at(15).unwrap_or(0),
        merged: at(1)? + at(5)? + at(12).unwrap_or(0),
        busy_ms: at(10)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_kernels_are_parsed() {
        let old = "  100  7 800 50  200 3 1600 80  0 120 130";
        assert_eq!(parse(old), Some(Counters { requests: 300, merged: 10, busy_ms: 130 }));
        let new = format!("{old} 5 1 40 9 6 2");
        assert_eq!(parse(&new), Some(Counters { requests: 311, merged: 11, busy_ms: 130 }));
        assert_eq!(parse("1 2 3"), None);
        assert_eq!(parse(""), None);
    }
}
