//! What the core gives to a thread, and gets back.

use iosonar_trace::Nanos;

use crate::replay::action::Action;
use crate::replay::execute::Descriptors;
use crate::replay::timed::Issued;

/// A call for a thread to issue.
#[derive(Debug)]
pub struct Job {
    /// Its place in the schedule.
    pub slot: u32,
    pub action: Box<Action>,
    pub to: Descriptors,
    /// Descriptors to close along with it.
    pub closes: Vec<i32>,
    /// Whether the call is only recorded as left out.
    pub is_left_out: bool,
}

/// A job that is done.
#[derive(Debug)]
pub struct Completion {
    /// Its place in the schedule.
    pub slot: u32,
    pub action: Box<Action>,
    /// Times and result.
    pub issued: Issued,
    /// As in [`Job::is_left_out`].
    pub is_left_out: bool,
    /// When the process stood still meanwhile.
    pub stalled: Option<(Nanos, Nanos)>,
}
