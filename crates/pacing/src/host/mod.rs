//! The machine that runs the replay: contention, isolation, a snapshot for the footer, and what it does meanwhile.

pub mod contention;
pub mod isolation;
pub mod machine;
mod proc_stat;
pub mod usage;

/// Processors that this program may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
