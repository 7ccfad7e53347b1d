//! Requests for tests.

use iosonar_trace::{DeviceId, Flags, Nanos, Op, Sector, Sectors};

use crate::pipeline::io::PreparedIo;

/// A write with deadline 0.
pub fn write(sequence_number: u64, sector: u64, sectors: u64) -> PreparedIo {
    PreparedIo {
        sequence_number,
        request: sequence_number - 1,
        iteration: 0,
        device: DeviceId(0),
        target: 0,
        source_sector: Sector(sector),
        sector: Sector(sector),
        sectors: Sectors(sectors),
        op: Op::Write,
        flags: Flags::default(),
        scheduled: Nanos(0),
        deadline: Nanos(0),
        ready: Nanos(i64::MIN / 2),
        widened: false,
        skip: None,
        buffer: None,
        origin: None,
        share: None,
    }
}
