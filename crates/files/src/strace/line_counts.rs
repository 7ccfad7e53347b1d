//! What users should know about a file.

/// What users should know about a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineCounts {
    /// Calls that returned, without a duration.
    pub without_duration: u64,
    /// Calls that a signal interrupted.
    pub interrupted: u64,
    /// Calls that make two descriptors, which strace did not print.
    pub pairs_without_descriptors: u64,
    /// Vectors of buffers that strace did not print.
    pub vectors_without_length: u64,
    /// Stack frames.
    pub frames: u64,
    /// Lines of tables of totals.
    pub totals: u64,
    /// Lines with colours.
    pub coloured: u64,
    /// Messages about processes of 32 bits.
    pub personalities: u64,
    /// Calls that were given up because too many were in flight.
    pub given_up: u64,
}
