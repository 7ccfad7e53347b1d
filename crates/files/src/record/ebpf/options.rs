//! How to record.

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of the ring buffer of unread events, in bytes: a power of two, at least a page.
    pub ring_bytes: u32,
}
