//! Which target a request goes to, and where on it.

pub mod device_map;
pub mod placement;
pub mod router;
