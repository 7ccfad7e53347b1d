//! One request of a load.

use std::fmt;

use crate::model::units::{Nanos, Sector, Sectors};

/// A request of a load, with the times and process that a recording may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was made, since the start of the trace; see [`crate::RequestTime`].
    pub at: Nanos,
    /// Its device, an index into [`crate::Metadata::devices`].
    pub device: DeviceId,
    /// Start position.
    pub sector: Sector,
    /// Length; zero for a flush without data.
    pub sectors: Sectors,
    /// Operation.
    pub op: Op,
    /// Flags of the operation.
    pub flags: Flags,
    /// From its issue to the device until its completion, if the trace has completions.
    pub latency: Option<Nanos>,
    /// From being queued until its issue to the device, if the trace has both.
    pub queued: Option<Nanos>,
    /// The process that made it, where known.
    pub pid: Option<u32>,
    /// Name of that process; empty where unknown.
    pub comm: Comm,
}

impl Request {
    /// A request on device 0, without flags, latency and process.
    pub fn new(at: Nanos, op: Op, sector: Sector, sectors: Sectors) -> Self {
        Self {
            at,
            device: DeviceId(0),
            sector,
            sectors,
            op,
            flags: Flags::NONE,
            latency: None,
            queued: None,
            pid: None,
            comm: Comm::default(),
        }
    }

    /// Whether it covers no sectors, as a flush does. Transforms of positions leave such a request unchanged.
    pub fn is_empty(&self) -> bool {
        self.sectors.0 == 0
    }

    /// The first sector after it.
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }
}

/// The index of a device in the trace's device table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u16);

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Op {
    /// Reads data.
    Read = 0,
    /// Writes data.
    Write = 1,
    /// Makes the device's volatile write cache durable.
    Flush = 2,
    /// Tells the device that the range is no longer needed.
    Discard = 3,
    /// Zeroes the range without a transfer of data.
    WriteZeroes = 4,
}

impl Op {
    /// All operations, by number.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Flush, Self::Discard, Self::WriteZeroes];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        ["read", "write", "flush", "discard", "write_zeroes"][self as usize]
    }

    /// The operation with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// The operation with this number (`op as u8`).
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Whether it changes the content of the device.
    pub fn modifies(self) -> bool {
        matches!(self, Self::Write | Self::Discard | Self::WriteZeroes)
    }
}

/// A set of the block layer's request flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Forced unit access: completes when the data is durable (`F` after the operation in RWBS).
    pub const FUA: Self = Self(1);
    /// Synchronous (`S`).
    pub const SYNC: Self = Self(2);
    /// File-system metadata (`M`).
    pub const META: Self = Self(4);
    /// Read-ahead (`A`).
    pub const READAHEAD: Self = Self(8);
    /// A flush before the data (`F` before the operation).
    pub const PREFLUSH: Self = Self(16);

    /// The flags of both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The name of a process in the kernel's form: at most 15 bytes, zero-padded (`TASK_COMM_LEN`).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Comm(pub [u8; 16]);

impl Comm {
    /// The first 15 bytes of `name`, cut at a character boundary.
    pub fn new(name: &str) -> Self {
        let mut end = name.len().min(15);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; 16];
        bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
        Self(bytes)
    }

    /// Like [`Comm::new`]; replaces invalid UTF-8.
    pub fn from_bytes(name: &[u8]) -> Self {
        match std::str::from_utf8(name) {
            Ok(name) => Self::new(name),
            Err(_) => Self::new(&String::from_utf8_lossy(name)),
        }
    }

    /// The name without its padding, up to the first invalid UTF-8.
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|&b| b == 0).unwrap_or(self.0.len());
        match std::str::from_utf8(&self.0[..end]) {
            Ok(name) => name,
            Err(e) => std::str::from_utf8(&self.0[..e.valid_up_to()]).unwrap_or(""),
        }
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
