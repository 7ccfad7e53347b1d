//! The target of each request, and its position there.

pub mod device_map;
pub mod router;
