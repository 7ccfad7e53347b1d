//! A request as it is compared, packed, and as it is told if one side has more of it.

use iosonar_trace::{Op, Sector, Sectors};
use serde::Serialize;

use super::devices::Group;

/// A request that one side has more often than the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Difference {
    /// Where it starts, in sectors.
    pub sector: u64,
    /// How long it is, in sectors.
    pub sectors: u64,
    /// What it does.
    #[serde(serialize_with = "by_name")]
    pub op: Op,
    /// Its time in its own file, in ns.
    pub at_ns: i64,
    /// Which of [`super::Comparison::devices`] it is on; `None`: on a target or device that corresponds to none of the other side.
    #[serde(skip)]
    pub device: Option<u16>,
}

fn by_name<S: serde::Serializer>(op: &Op, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(op.name())
}

/// What is compared, then the time: the order of the fields is the order in which both sides are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    sector: u64,
    /// The length, with the group's number above it and the operation's in the highest bits.
    sectors_and_op: u64,
    /// Its time in its own file.
    pub at_ns: i64,
}

/// No length reaches these bits: 2^40 sectors in one request are 512 TiB.
const GROUP_SHIFT: u32 = 40;
const OP_SHIFT: u32 = GROUP_SHIFT + Group::BITS;

impl Entry {
    /// Of a request.
    pub fn new(group: Group, op: Op, sector: Sector, sectors: Sectors, at_ns: i64) -> Self {
        let sectors = sectors.0.min((1 << GROUP_SHIFT) - 1);
        // Flushes have no place, whatever a trace says.
        let sector = if op == Op::Flush && sectors == 0 { Sector(0) } else { sector };
        let sectors_and_op = (op as u64) << OP_SHIFT | u64::from(group) << GROUP_SHIFT | sectors;
        Self { sector: sector.0, sectors_and_op, at_ns }
    }

    /// What must be alike.
    pub fn key(self) -> (u64, u64) {
        (self.sector, self.sectors_and_op)
    }

    /// Whether it is a flush.
    pub fn is_flush(self) -> bool {
        self.sectors_and_op >> OP_SHIFT == Op::Flush as u64
    }

    /// The pass that it belongs to. (The multiplier is 2^64 divided by the golden ratio: Knuth, The Art of Computer
    /// Programming 3, 6.4.)
    pub fn share(self, passes: u64) -> u64 {
        ((self.sector ^ self.sectors_and_op).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % passes
    }

    /// As it is told.
    pub fn difference(self) -> Difference {
        Difference {
            sector: self.sector,
            sectors: self.sectors_and_op & ((1 << GROUP_SHIFT) - 1),
            op: Op::from_number((self.sectors_and_op >> OP_SHIFT) as u8).expect("it was made from one"),
            at_ns: self.at_ns,
            device: ((self.sectors_and_op >> GROUP_SHIFT) as Group).checked_sub(1),
        }
    }
}
