//! Queue settings of a device from sysfs: scheduler, caches and limits.

use iosonar_trace::run_info::Queue;

use super::sysfs;

/// The queue of a device, or of a partition's disk.
pub fn queue_of(rdev: u64) -> Queue {
    let number = |name| sysfs::queue(rdev, name).and_then(|text| text.parse().ok());
    Queue {
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
