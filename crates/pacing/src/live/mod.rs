//! Numbers of a run while it goes on. The stage that records completed requests or calls counts them here, without a lock and
//! not in the issuing loop; any thread reads.

mod counts;
mod layout;
mod snapshot;
#[cfg(test)]
mod tests;
mod times;

pub use self::counts::{DeviceName, Live, Row, Words};
pub use self::layout::SCHEMA;
pub use self::snapshot::{DeviceSnapshot, OperationSnapshot, Recent, Snapshot};
pub use self::times::{Distribution, FineCounts};
