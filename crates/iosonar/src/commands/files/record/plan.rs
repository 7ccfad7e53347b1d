//! What is recorded, and how long.

use std::time::Duration;

use iosonar_files::Metadata;
use iosonar_files::record::ebpf::Destination;

use crate::signals::Orders;

/// A recording that is about to start.
pub struct Plan {
    pub destination: Destination,
    pub metadata: Metadata,
    pub command: Vec<String>,
    pub pid: Option<u32>,
    /// Every process, whichever the command is.
    pub all: bool,
    /// Page faults in mapped files, too.
    pub faults: bool,
    pub duration: Option<Duration>,
    pub ring_bytes: u32,
    pub orders: Orders,
}
