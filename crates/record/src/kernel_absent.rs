//! In the place of `kernel.rs` in a build without clang: there is nothing to load.

use std::time::Duration;

use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::event::{Drained, Event};
use crate::options::Options;

/// Can't be made.
pub enum Kernel {}

impl Kernel {
    pub fn load(_: &[BlockDevice], _: &Options) -> Result<Self> {
        Err(Error::NotBuilt)
    }

    pub fn wait(&self, _: Duration) -> Result<()> {
        match *self {}
    }

    pub fn drain(&mut self, _: usize, _: impl FnMut(&Event)) -> Drained {
        match *self {}
    }

    pub fn stop(self) {
        match self {}
    }

    pub fn lost_events(&self) -> u64 {
        match *self {}
    }

    pub fn skipped_events(&self) -> u64 {
        match *self {}
    }

    pub fn other_commands(&self) -> u64 {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Run by `make test-without-clang`.
    #[test]
    fn recording_is_refused_and_says_what_to_install() {
        let options = Options { level: crate::Level::Queue, ring_bytes: 1 << 20, note: String::new() };
        let Err(error) = Kernel::load(&[], &options);
        assert!(matches!(error, Error::NotBuilt));
        let said = error.to_string();
        assert!(["clang", "blktrace", "perf", "bpftrace"].iter().all(|name| said.contains(name)), "{said}");
    }
}
