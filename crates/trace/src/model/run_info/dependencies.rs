//! What the requests of a load waited for, as far as it was inferred.

use super::field::{Field, fields};

fields! {
    /// Inferred dependencies.
    RunDependencies {
        /// The requests of the load.
        requests: u64,
        /// Those that waited for an earlier one of the same process.
        by_process: u64,
        /// Those without a process that waited for an earlier one.
        by_time: u64,
        /// How likely one of these waited for just that request, on average.
        confidence: f64,
    }
}
