//! Preparation ahead of the loop: requests, buffers and data.

pub mod ahead;
pub(crate) mod prefetch;
pub mod prepare;
pub mod program;
pub mod sharding;
