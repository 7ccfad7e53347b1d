//! How to record.

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the ring buffer of unread events, in bytes: a power of two, at least a page.
    pub ring_bytes: u32,
    /// Record every process but this one.
    pub all: bool,
    /// Record page faults in mapped files.
    pub faults: bool,
}

impl Options {
    /// The most threads that are recorded at a time.
    pub fn max_threads(&self) -> u32 {
        if self.all { 1 << 17 } else { 1 << 15 }
    }
}
