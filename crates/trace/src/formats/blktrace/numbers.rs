//! Constants of `include/uapi/linux/blktrace_api.h`.

use crate::model::request::Flags;

pub const NAME: &str = "blktrace";

/// The number of records of a file that are kept sorted.
pub const READ_AHEAD: usize = 1024;

/// The first field of a record, without the version in its lowest byte.
pub const MAGIC: u32 = 0x6561_7400;

/// The categories of an action, in the bits above the number of the event.
pub mod category {
    pub const SHIFT: u32 = 16;
    pub const READ: u64 = 1;
    pub const WRITE: u64 = 1 << 1;
    pub const FLUSH: u64 = 1 << 2;
    pub const SYNC: u64 = 1 << 3;
    pub const QUEUE: u64 = 1 << 4;
    pub const ISSUE: u64 = 1 << 6;
    pub const COMPLETE: u64 = 1 << 7;
    pub const DRIVER_COMMAND: u64 = 1 << 9;
    pub const NOTIFY: u64 = 1 << 10;
    pub const AHEAD: u64 = 1 << 11;
    pub const META: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const FUA: u64 = 1 << 15;
    /// A write, unlike the other zone operations. This category and the following ones exist only in version 8.
    pub const ZONE_APPEND: u64 = 1 << 16;
    /// Reset, reset all, finish, open, close.
    pub const ZONE_MANAGEMENT: u64 = 1 << 17 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 21;
    pub const WRITE_ZEROES: u64 = 1 << 22;
}

/// The flags of categories.
pub const FLAGS: [(u64, Flags); 5] = [
    (category::SYNC, Flags::SYNC),
    (category::AHEAD, Flags::READAHEAD),
    (category::META, Flags::META),
    (category::FUA, Flags::FUA),
    (category::FLUSH, Flags::PREFLUSH),
];

/// The numbers of the events.
pub mod event {
    pub const QUEUE: u16 = 1;
    pub const GET_REQUEST: u16 = 4;
    pub const REQUEUE: u16 = 6;
    pub const ISSUE: u16 = 7;
    pub const COMPLETE: u16 = 8;
    pub const SPLIT: u16 = 11;
    pub const INSERT: u16 = 12;
    pub const REMAP: u16 = 15;
    /// This bit is set if the record contains a control group.
    pub const CGROUP: u16 = 1 << 8;
}

/// The numbers of the notifications.
pub mod notification {
    pub const PROCESS: u16 = 0;
    pub const TIMESTAMP: u16 = 1;
    #[cfg(test)]
    pub const MESSAGE: u16 = 2;
}

/// The bits of the minor number in a device number of 32 bits.
pub const MINOR_BITS: u32 = 20;
