//! The targets of a run, with the settings of their queues and file systems.

use serde::{Deserialize, Serialize};

use super::field::fields;

fields! {
    /// A target. Null means that the kernel has no such value.
    RunTarget {
        /// Its path, as given.
        path: String,
        /// Block device or regular file.
        kind: TargetKind,
        /// Its size in sectors of 512 bytes.
        sectors: u64,
        /// Logical block size: the smallest unit of I/O.
        logical_block_bytes: u64,
        /// Active scheduler of a block device.
        scheduler: String,
        /// `write back` or `write through`, of a block device.
        write_cache: String,
        /// The underlying disk; for a file, the one below its file system.
        disk: String,
        /// Major and minor number of the device, which may be a partition, as `8,3`.
        number: String,
        /// Major and minor number of the disk.
        disk_number: String,
        /// The request queue of the disk.
        queue: Queue,
        /// The file system of a file.
        mount: RunMount,
        /// Devices of the load that were mapped to it by name, as indices into the footer's `devices`.
        sources: Vec<u64>,
        /// Whether all other devices were mapped to it as well.
        others: bool,
    }
}

/// What a target is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A block device.
    Block,
    /// A regular file.
    File,
    /// No storage, for engines that do no I/O.
    None,
}

/// The attributes in `/sys/block/NAME/queue`. Null means that the kernel does not have the attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The active scheduler.
    pub scheduler: Option<String>,
    /// The available schedulers.
    pub schedulers: Vec<String>,
    /// `write back` or `write through`: whether the device reports a volatile write cache.
    pub write_cache: Option<String>,
    /// Whether the device reports itself as rotational. Virtual disks often do.
    pub rotational: Option<bool>,
    /// Logical block size, in bytes: the smallest unit of I/O.
    pub logical_block_bytes: Option<u64>,
    /// Physical block size, in bytes: the smallest unit that the device writes without a read-modify-write.
    pub physical_block_bytes: Option<u64>,
    /// Requests of each kind that the scheduler's queue holds.
    pub nr_requests: Option<u64>,
    /// The longest request that the kernel sends to the device, in KiB; it splits longer ones. Can be changed.
    pub max_sectors_kb: Option<u64>,
    /// Upper limit of `max_sectors_kb`, in KiB.
    pub max_hw_sectors_kb: Option<u64>,
    /// The most memory segments of one request.
    pub max_segments: Option<u64>,
    /// Unit of discards, in bytes; 0 if the device does not support discards.
    pub discard_granularity: Option<u64>,
    /// The longest discard, in bytes; 0 if the device does not support discards.
    pub discard_max_bytes: Option<u64>,
    /// The longest write-zeroes command, in bytes; 0 if the device does not support it.
    pub write_zeroes_max_bytes: Option<u64>,
    /// Target read latency of writeback throttling, in µs: above it, the kernel throttles background writes; 0 if
    /// throttling is off. Null without writeback throttling.
    pub wbt_lat_usec: Option<u64>,
    /// Read-ahead of buffered reads, in KiB.
    pub read_ahead_kb: Option<u64>,
    /// The zone model; `none` if the device is not zoned.
    pub zoned: Option<String>,
}

/// The file system of a target that is a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMount {
    /// The directory on which it is mounted.
    pub place: String,
    /// Its type, such as `ext4`.
    pub file_system: String,
    /// Mount options: those of the mount point, then those of the file system.
    pub options: String,
    /// Its source, usually the path of a device.
    pub source: String,
}
