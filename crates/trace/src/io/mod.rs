//! Files as streams of bytes: compression, atomic creation, checkpoints and recovery.

pub(crate) mod atomic_file;
pub(crate) mod checkpoint;
pub(crate) mod guarded;
pub(crate) mod gzip;
pub mod input;
pub mod journal;
pub mod output;
pub mod pipe;
pub mod small_file;
pub(crate) mod stream;
pub(crate) mod writer_thread;
