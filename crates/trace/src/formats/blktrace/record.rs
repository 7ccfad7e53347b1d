//! The layout of records, in both versions and byte orders.

use crate::model::request::{Flags, Op};
use crate::model::rwbs::NotARequest;

use super::numbers::{FLAGS, MAGIC, MINOR_BITS, category, event};

/// The layout of the records of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub order: ByteOrder,
    pub version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Seven,
    Eight,
}

impl Version {
    pub fn record_bytes(self) -> usize {
        match self {
            Self::Seven => 48,
            Self::Eight => 64,
        }
    }
}

/// The layout of a file that begins with `head`.
pub fn layout(head: &[u8]) -> Option<Layout> {
    let magic: [u8; 4] = head.get(..4)?.try_into().ok()?;
    [(ByteOrder::Little, u32::from_le_bytes(magic)), (ByteOrder::Big, u32::from_be_bytes(magic))].into_iter().find_map(
        |(order, magic)| {
            let version = match magic.checked_sub(MAGIC)? {
                7 => Version::Seven,
                8 => Version::Eight,
                _ => return None,
            };
            Some(Layout { order, version })
        },
    )
}

/// A record, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub magic: u32,
    pub sequence: u32,
    pub time: u64,
    pub sector: u64,
    pub bytes: u32,
    pub action: u64,
    pub pid: u32,
    pub device: u32,
    pub cpu: u32,
    pub error: u16,
    pub pdu_bytes: u16,
}

impl Record {
    pub fn read(layout: Layout, bytes: &[u8]) -> Self {
        let big = layout.order == ByteOrder::Big;
        let u16_at = |at: usize| {
            let value = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
            if big { value.swap_bytes() } else { value }
        };
        let u32_at = |at: usize| {
            let value = u32::from_le_bytes(*bytes[at..].first_chunk().unwrap_or(&[0; 4]));
            if big { value.swap_bytes() } else { value }
        };
        let u64_at = |at: usize| {
            let value = u64::from_le_bytes(*bytes[at..].first_chunk().unwrap_or(&[0; 8]));
            if big { value.swap_bytes() } else { value }
        };
        let (action, pid, device, cpu, error, pdu_bytes) = match layout.version {
            Version::Seven => (u32_at(28).into(), u32_at(32), u32_at(36), u32_at(40), u16_at(44), u16_at(46)),
            Version::Eight => (u64_at(32), u32_at(28), u32_at(40), u32_at(44), u16_at(48), u16_at(50)),
        };
        Self {
            magic: u32_at(0),
            sequence: u32_at(4),
            time: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            action,
            pid,
            device,
            cpu,
            error,
            pdu_bytes,
        }
    }

    /// The number of its event or notification.
    pub fn number(&self) -> u16 {
        (self.action & 0xffff) as u16 & !event::CGROUP
    }

    pub fn has(&self, category: u64) -> bool {
        self.action >> category::SHIFT & category != 0
    }
}

/// `major,minor`, as printed by blkparse.
pub fn device_name(number: u32) -> String {
    format!("{},{}", number >> MINOR_BITS, number & ((1 << MINOR_BITS) - 1))
}

/// The operation and flags of a record with a length of `sectors`.
///
/// # Errors
/// If it is not a request; the error says what it is.
pub fn operation(record: &Record, sectors: u64) -> Result<(Op, Flags), NotARequest> {
    if record.has(category::DRIVER_COMMAND) {
        return Err(NotARequest::DriverCommand);
    }
    if record.has(category::ZONE_MANAGEMENT) {
        return Err(NotARequest::ZoneManagement);
    }
    let mut flags = Flags::NONE;
    for (bit, flag) in FLAGS {
        if record.has(bit) {
            flags = flags.with(flag);
        }
    }
    let op = if record.has(category::DISCARD) {
        Op::Discard
    } else if record.has(category::WRITE_ZEROES) {
        Op::WriteZeroes
    } else if sectors == 0 && record.has(category::FLUSH) {
        Op::Flush
    } else if record.has(category::WRITE) {
        Op::Write
    } else if record.has(category::READ) {
        Op::Read
    } else {
        return Err(NotARequest::Unknown);
    };
    // A flush without data has no such flags, although its record has the categories.
    let flushes = Flags::PREFLUSH.with(Flags::FUA);
    Ok((op, if op == Op::Flush { Flags(flags.0 & !flushes.0) } else { flags }))
}
