//! What the issuing loop drives. One file for each kind; the loop does not know which one it has.

use std::io;

use iosonar_trace::{Flags, Nanos, Op};

use crate::pipeline::buffers::Buffer;

mod calls;
pub mod choice;
#[cfg(test)]
mod conformance;
mod discards;
pub mod mock;
pub mod null;
pub mod service;
pub mod simulate;
pub mod threads;
pub mod uring;

/// One request, as a target takes it.
#[derive(Debug)]
pub struct Io<'a> {
    /// Comes back in [`Completion::slot`].
    pub slot: u32,
    /// The request's own number: the same in every run of the load.
    pub key: u64,
    /// Which of the run's targets.
    pub target: u16,
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// Where, in bytes.
    pub offset: u64,
    /// How much, in bytes.
    pub length: u64,
    /// The data, or where to put it. Stays where it is until the completion was reaped.
    pub buffer: Option<&'a Buffer>,
}

/// A request that the target is through with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot of its [`Io`].
    pub slot: u32,
    /// Bytes moved, or a negated error number.
    pub result: i64,
}

/// Something that does I/O in the background.
pub trait Target {
    /// Lines a request up; nothing happens before [`Target::submit`].
    fn stage(&mut self, io: Io<'_>);

    /// Hands over what was staged. An error ends the run; errors of single requests come with their completions.
    fn submit(&mut self) -> io::Result<()>;

    /// Takes one completion, if there is any. Cheap; never waits.
    fn reap(&mut self) -> Option<Completion>;

    /// Waits for a completion, but not beyond `timeout`.
    fn wait(&mut self, timeout: Nanos) -> io::Result<()>;

    /// What the user should know: wishes that were not granted, and what the run showed so far. Asked for before and
    /// after the run.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// For targets that are slower than the loop anyway: one compiled loop serves them all.
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

    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        (**self).wait(timeout)
    }

    fn remarks(&self) -> Vec<String> {
        (**self).remarks()
    }
}
