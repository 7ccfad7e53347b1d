//! The machine that runs the replay: contention, isolation, and a snapshot for the footer.

pub mod contention;
pub mod isolation;
pub mod machine;
