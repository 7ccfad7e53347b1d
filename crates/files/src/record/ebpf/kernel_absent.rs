//! Replaces `kernel.rs` in a build without clang: there is no eBPF program to load.

use std::time::Duration;

use iosonar_ebpf::Drained;

use super::event::{Event, RawCall};
use super::losses::Losses;
use super::options::Options;
use crate::record::error::{Error, Result};

/// Has no values.
pub enum Kernel {}

impl Kernel {
    pub fn load(_: &Options) -> Result<Self> {
        Err(Error::NotBuilt)
    }

    pub fn announce(&self) -> Result<()> {
        match *self {}
    }

    pub fn follow(&mut self, _: u32) -> Result<Vec<u32>> {
        match *self {}
    }

    pub fn wait(&self, _: Duration) -> Result<()> {
        match *self {}
    }

    pub fn drain(&mut self, _: usize, _: impl FnMut(&Event)) -> Drained {
        match *self {}
    }

    pub fn note_skipped(&mut self) {
        match *self {}
    }

    pub fn stop(&mut self) {
        match *self {}
    }

    pub fn in_flight(&self) -> Vec<RawCall> {
        match *self {}
    }

    pub fn losses(&self) -> Losses {
        match *self {}
    }

    pub fn knows_waiting(&self) -> bool {
        match *self {}
    }

    pub fn uring_problem(&self) -> Option<&str> {
        match *self {}
    }
}
