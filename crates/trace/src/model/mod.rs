//! Requests, their results, and what a file says about itself.

pub(crate) mod io_result;
pub(crate) mod metadata;
pub(crate) mod request;
pub mod run_info;
pub(crate) mod rwbs;
pub(crate) mod units;
pub(crate) mod versions;
