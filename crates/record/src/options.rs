//! The options of a recording.

/// The point in the block layer at which requests are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// As submitted to the device: before splitting, merging and queueing (blktrace's Q).
    Queue,
    /// As issued to the driver: after all of that (blktrace's D).
    Driver,
}

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// The point of the block layer at which requests are recorded.
    pub level: Level,
    /// Size of the ring buffer of unread events, in bytes: a power of two, at least a page.
    pub ring_bytes: u32,
    /// Free text for the footer: origin, licence.
    pub note: String,
}
