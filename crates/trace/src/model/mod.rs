//! Requests, their results, and the metadata of files.

pub(crate) mod io_result;
pub(crate) mod metadata;
pub(crate) mod period;
pub(crate) mod request;
pub(crate) mod row;
pub mod run_info;
pub(crate) mod rwbs;
pub(crate) mod sanity;
pub(crate) mod times;
pub(crate) mod units;
pub(crate) mod versions;
