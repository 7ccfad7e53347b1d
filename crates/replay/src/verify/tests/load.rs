//! Requests for tests.

use iosonar_trace::{Nanos, Op, Sector, Sectors};

use crate::io::PreparedIo;

/// A write with deadline 0.
pub fn write(sequence_number: u64, sector: u64, sectors: u64) -> PreparedIo {
    PreparedIo::new(sequence_number - 1, Op::Write, Sector(sector), Sectors(sectors), Nanos::ZERO)
}
