//! Engines, one file for each. The issuing loop uses them through [`Target`].

use std::io;

use iosonar_pacing::buffers::Buffer;
use iosonar_pacing::idle::Waiter;
use iosonar_trace::{Flags, Nanos, Op};

mod calls;
pub mod choice;
#[cfg(test)]
mod conformance;
mod discards;
pub mod method;
pub mod mock;
pub mod null;
pub mod service;
pub mod simulate;
pub mod threads;
pub mod uring;

/// A request as an engine receives it.
#[derive(Debug)]
pub struct Io<'a> {
    /// Returned in [`Completion::slot`].
    pub slot: u32,
    /// Identifies the request; the same in every run of the load.
    pub key: u64,
    /// Index of the target.
    pub target: u16,
    /// Read, write, flush, discard or write of zeroes.
    pub op: Op,
    /// Flags of the operation, such as FUA.
    pub flags: Flags,
    /// Position in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// The buffer of the data. It must not move until the completion is reaped.
    pub buffer: Option<&'a Buffer>,
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot of its [`Io`].
    pub slot: u32,
    /// Bytes transferred, or a negated error number.
    pub result: i64,
    /// When it was issued, on `CLOCK_MONOTONIC`, if that was not in [`Target::submit`].
    pub issued: Option<Nanos>,
}

/// An engine: performs I/O asynchronously. [`Waiter::wait`] waits for a completion.
pub trait Target: Waiter {
    /// Adds a request to the next submission. It is not issued before [`Target::submit`].
    fn stage(&mut self, io: Io<'_>);

    /// Submits all staged requests. An error ends the run; errors of single requests are in their completions.
    fn submit(&mut self) -> io::Result<()>;

    /// Returns a completion, if there is any. Cheap and non-blocking.
    fn reap(&mut self) -> Option<Completion>;

    /// Completions that [`Target::reap`] returns next and that are there by now: all of them can have the time of one
    /// reading of the clock. May be too few.
    #[inline]
    fn at_hand(&mut self) -> usize {
        0
    }

    /// Warnings about the setup and about the run so far. Called before and after the run.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// For engines other than io_uring, which share one compiled loop.
impl Target for Box<dyn Target> {
    fn stage(&mut self, io: Io<'_>) {
        (**self).stage(io);
    }

    fn submit(&mut self) -> io::Result<()> {
        (**self).submit()
    }

    fn reap(&mut self) -> Option<Completion> {
        (**self).reap()
    }

    fn at_hand(&mut self) -> usize {
        (**self).at_hand()
    }

    fn warnings(&self) -> Vec<String> {
        (**self).warnings()
    }
}

impl Waiter for Box<dyn Target> {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        (**self).wait(timeout)
    }
}
