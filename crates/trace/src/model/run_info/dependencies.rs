//! What the requests of a load waited for, as far as it was inferred.

use super::field::{Field, fields};
use crate::human::{count, counted};

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

impl RunDependencies {
    /// What was found, as a sentence.
    pub fn sentence(&self) -> String {
        let number = |field: &Field<u64>| field.value().unwrap_or_default();
        let (all, by_process, by_time) = (number(&self.requests), number(&self.by_process), number(&self.by_time));
        let confidence = self.confidence.value().unwrap_or_default();
        match by_process + by_time {
            0 => format!(
                "none of {} is known to wait for another, so all are issued at their times",
                counted(all, "request")
            ),
            waiting => format!(
                "{} of {} wait for another one ({} found by process, {} by time; {:.0} % confidence)",
                count(waiting),
                counted(all, "request"),
                count(by_process),
                count(by_time),
                confidence * 100.0
            ),
        }
    }
}
