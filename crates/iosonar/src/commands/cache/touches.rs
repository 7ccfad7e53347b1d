//! How many blocks the requests of a load touch: too many cannot be counted each.

use std::path::Path;

use anyhow::{Result, bail};
use iosonar_trace::{Request, Sectors};

use crate::human;

/// Accesses of a load whose requests touch more than [`MAX_OF_REQUEST`] blocks on average.
const MAX_ACCESSES: u64 = 1 << 26;
const MAX_OF_REQUEST: u64 = 4096;

#[derive(Default)]
pub struct Touches {
    blocks: u64,
    requests: u64,
}

impl Touches {
    pub fn add(&mut self, path: &Path, request: &Request, block: Sectors) -> Result<()> {
        self.requests += 1;
        self.blocks = self.blocks.saturating_add(request.sectors.0.div_ceil(block.0));
        let Self { blocks, requests } = *self;
        if blocks > MAX_ACCESSES && blocks / requests > MAX_OF_REQUEST {
            bail!(
                "{}: {} blocks of {} after {}, too many to count each; set --block to {} or more",
                path.display(),
                human::count(blocks),
                human::block(block.0 * 512),
                human::counted(requests, "request"),
                human::block((block.0 * 512 * (blocks / requests) / MAX_OF_REQUEST).next_power_of_two()),
            );
        }
        Ok(())
    }
}
