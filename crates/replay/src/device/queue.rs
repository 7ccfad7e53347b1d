//! How the kernel queues what a device is asked: scheduler, caches and limits, as sysfs tells them.

use serde::{Deserialize, Serialize};

use super::sysfs;

/// What stands in `/sys/block/NAME/queue`. Whatever the kernel does not tell is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The active scheduler.
    pub scheduler: Option<String>,
    /// Those that it could have.
    pub schedulers: Vec<String>,
    /// `write back` or `write through`: whether the device says that it has a cache that a power failure would empty.
    pub write_cache: Option<String>,
    /// Whether the device calls itself rotational. Virtual disks often do.
    pub rotational: Option<bool>,
    /// The smallest unit that can be asked for, in bytes.
    pub logical_block_bytes: Option<u64>,
    /// The smallest unit that the device writes without reading first, in bytes.
    pub physical_block_bytes: Option<u64>,
    /// How many requests of a kind the scheduler's queue holds.
    pub nr_requests: Option<u64>,
    /// The longest request that the kernel hands to the device, in KiB: longer ones are split. Can be set.
    pub max_sectors_kb: Option<u64>,
    /// The longest that `max_sectors_kb` can be set to, in KiB.
    pub max_hw_sectors_kb: Option<u64>,
    /// The most pieces of memory that one request may lie in.
    pub max_segments: Option<u64>,
    /// What discards are a multiple of, in bytes; 0: the device takes none.
    pub discard_granularity: Option<u64>,
    /// The longest discard, in bytes; 0: the device takes none.
    pub discard_max_bytes: Option<u64>,
    /// The longest command to write zeroes without sending them, in bytes; 0: the device has none.
    pub write_zeroes_max_bytes: Option<u64>,
    /// Above this latency of reads, in µs, the kernel throttles background writes; 0: it does not. Missing without that
    /// mechanism.
    pub wbt_lat_usec: Option<u64>,
    /// How far buffered reads look ahead, in KiB.
    pub read_ahead_kb: Option<u64>,
    /// `none`, or how the device is zoned.
    pub zoned: Option<String>,
}

impl Queue {
    /// Of a device, or of the disk of a partition.
    pub fn of(rdev: u64) -> Self {
        let number = |name| sysfs::queue(rdev, name).and_then(|text| text.parse().ok());
        Self {
            scheduler: sysfs::scheduler(rdev),
            schedulers: sysfs::schedulers(rdev),
            write_cache: sysfs::queue(rdev, "write_cache"),
            rotational: sysfs::queue(rdev, "rotational").map(|text| text == "1"),
            logical_block_bytes: number("logical_block_size"),
            physical_block_bytes: number("physical_block_size"),
            nr_requests: number("nr_requests"),
            max_sectors_kb: number("max_sectors_kb"),
            max_hw_sectors_kb: number("max_hw_sectors_kb"),
            max_segments: number("max_segments"),
            discard_granularity: number("discard_granularity"),
            discard_max_bytes: number("discard_max_bytes"),
            write_zeroes_max_bytes: number("write_zeroes_max_bytes"),
            wbt_lat_usec: number("wbt_lat_usec"),
            read_ahead_kb: number("read_ahead_kb"),
            zoned: sysfs::queue(rdev, "zoned"),
        }
    }
}
