//! The machine that runs the replay: contention, isolation, and a snapshot for the footer.

pub mod contention;
pub mod isolation;
pub mod machine;

/// Processors that this program may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
