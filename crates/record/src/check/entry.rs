//! A request in packed form for comparison, and a difference as it is reported.

use iosonar_trace::{Op, Sector, Sectors};
use serde::Serialize;

use super::devices::Group;

/// A request that one side has more often than the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Operation.
    #[serde(serialize_with = "by_name")]
    pub op: Op,
    /// Its time in its own file, in ns.
    pub at_ns: i64,
    /// Index in [`super::Comparison::devices`]; `None` if its target or device has no match on the other side.
    #[serde(skip)]
    pub device: Option<u16>,
}

impl Difference {
    /// Whether it is a flush.
    pub fn is_flush(&self) -> bool {
        self.op == Op::Flush && self.sectors == 0
    }
}

fn by_name<S: serde::Serializer>(op: &Op, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(op.name())
}

/// Entries sort by what is compared, then by time, in the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    sector: u64,
    /// The length in the low bits, then the group's number, and the operation in the highest bits.
    sectors_and_op: u64,
    /// Its time in its own file.
    pub at_ns: i64,
}

/// Lengths are below 2^40 sectors: 512 TiB in one request.
const GROUP_SHIFT: u32 = 40;
const OP_SHIFT: u32 = GROUP_SHIFT + Group::BITS;

impl Entry {
    /// Packs a request.
    pub fn new(group: Group, op: Op, sector: Sector, sectors: Sectors, at_ns: i64) -> Self {
        let sectors = sectors.0.min((1 << GROUP_SHIFT) - 1);
        // Flushes have no position; some traces write one.
        let sector = if op == Op::Flush && sectors == 0 { Sector(0) } else { sector };
        let sectors_and_op = (op as u64) << OP_SHIFT | u64::from(group) << GROUP_SHIFT | sectors;
        Self { sector: sector.0, sectors_and_op, at_ns }
    }

    /// The fields that must be equal.
    pub fn key(self) -> (u64, u64) {
        (self.sector, self.sectors_and_op)
    }

    /// Whether it is a flush.
    pub fn is_flush(self) -> bool {
        self.sectors_and_op >> OP_SHIFT == Op::Flush as u64
    }

    /// The pass that it belongs to. (Fibonacci hashing, with 2^64 divided by the golden ratio: Knuth, The Art of
    /// Computer Programming 3, 6.4.)
    pub fn share(self, passes: u64) -> u64 {
        ((self.sector ^ self.sectors_and_op).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % passes
    }

    /// Unpacks it.
    pub fn difference(self) -> Difference {
        Difference {
            sector: self.sector,
            sectors: self.sectors_and_op & ((1 << GROUP_SHIFT) - 1),
            op: Op::from_number((self.sectors_and_op >> OP_SHIFT) as u8).expect("packed from an Op"),
            at_ns: self.at_ns,
            device: ((self.sectors_and_op >> GROUP_SHIFT) as Group).checked_sub(1),
        }
    }
}
