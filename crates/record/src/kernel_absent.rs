//! Replaces `kernel.rs` in a build without clang: there is no eBPF program to load.

use std::time::Duration;

use iosonar_ebpf::Drained;

use crate::device::BlockDevice;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::options::Options;

/// Has no values.
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
