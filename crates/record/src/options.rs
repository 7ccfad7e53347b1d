//! What is recorded, and how.

/// At which point of its way a request is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What was asked of the device: before splitting, merging and waiting in its queue (blktrace's Q).
    Queue,
    /// What reached the device: after all of that (blktrace's D).
    Driver,
}

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// At which point.
    pub level: Level,
    /// Room for events that were not read yet: a power of two, at least a page.
    pub ring_bytes: u32,
    /// Free text for the footer: origin, licence.
    pub note: String,
}
