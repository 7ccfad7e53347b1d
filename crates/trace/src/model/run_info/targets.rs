//! The targets of a run: what was overwritten, and how the kernel queues what they are asked.

use serde::{Deserialize, Serialize};

use super::stated::stated;

stated! {
    /// A target. Null means that the machine has no such value.
    RunTarget {
        /// Its path, as given.
        path: String,
        /// Block device or regular file.
        kind: TargetKind,
        /// Its size in sectors of 512 bytes.
        sectors: u64,
        /// The smallest unit that can be asked for.
        logical_block_bytes: u64,
        /// The active scheduler of a block device.
        scheduler: String,
        /// `write back` or `write through`, of a block device.
        write_cache: String,
        /// The disk at the bottom; for a file, the one below its file system.
        disk: String,
        /// Major and minor number of the device, which may be a partition, as `8,3`.
        number: String,
        /// The same of its disk.
        disk_number: String,
        /// How the kernel queues what the disk is asked.
        queue: Queue,
        /// The file system of a file.
        mount: RunMount,
        /// Devices of the load that were mapped to it by name, as indices into the footer's `devices`.
        sources: Vec<u64>,
        /// Whether unnamed devices went there as well.
        others: bool,
    }
}

/// What a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A block device.
    Block,
    /// A regular file.
    File,
    /// No storage at all, for engines that do no I/O.
    None,
}

/// What stands in `/sys/block/NAME/queue`. Null means that the kernel does not tell.
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
    /// Above this latency of reads, in µs, the kernel throttles background writes; 0: it does not. Null without that
    /// mechanism.
    pub wbt_lat_usec: Option<u64>,
    /// How far buffered reads look ahead, in KiB.
    pub read_ahead_kb: Option<u64>,
    /// `none`, or how the device is zoned.
    pub zoned: Option<String>,
}

/// The file system that a file lies on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMount {
    /// Where it is mounted.
    pub place: String,
    /// Its kind, such as `ext4`.
    pub file_system: String,
    /// What it was mounted with: options of the place, then those of the file system.
    pub options: String,
    /// What it is made of: mostly the path of a device.
    pub source: String,
}
