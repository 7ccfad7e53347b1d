//! The machine that the replay runs on.

pub mod contention;
pub mod isolation;
pub mod machine;
