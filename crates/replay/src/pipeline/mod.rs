//! Preparation ahead of the loop: requests, buffers and data.

pub mod ahead;
pub(crate) mod inline_stages;
pub(crate) mod io;
pub(crate) mod prefetch;
pub mod prepare;
pub mod program;
pub mod sharding;
