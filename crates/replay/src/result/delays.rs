//! The delay of a request, from its row.

use iosonar_pacing::fidelity::Delay;
use iosonar_trace::run_info::Cause;
use iosonar_trace::{DelayReason, IoResult};

/// How a request was issued.
#[derive(Clone, Copy, Debug, Default)]
pub struct Issue {
    /// The loop.
    pub issuer: u16,
    /// See [`CompletedIo::is_late_by_load`](crate::io::CompletedIo::is_late_by_load).
    pub is_late_by_load: bool,
}

impl From<u16> for Issue {
    fn from(issuer: u16) -> Self {
        Self { issuer, is_late_by_load: false }
    }
}

/// The delay of the request in a row, of which `is_late_by_load` is as in [`Issue`]; `None` if it was not issued.
pub fn delay_of(record: &IoResult, is_late_by_load: bool) -> Option<Delay> {
    Some(Delay {
        number: record.request,
        scheduled: record.scheduled,
        issued: record.issued?,
        is_own: record.is_not_held_back(),
        cause: match recorded_cause(record) {
            None | Some(Cause::Backlog) if is_late_by_load => Some(Cause::Burst),
            cause => cause,
        },
        has_company: record.waiting > 0 || record.in_flight > 1,
    })
}

/// The cause of a delay, if the row has it.
fn recorded_cause(record: &IoResult) -> Option<Cause> {
    match record.delay_reason {
        DelayReason::Backlog => Some(Cause::Backlog),
        _ if record.pushed_back => Some(Cause::Overlap),
        DelayReason::None => None,
        DelayReason::Depth => Some(Cause::Depth),
        DelayReason::Order => Some(Cause::Order),
        DelayReason::Input => Some(Cause::Input),
        DelayReason::CompletionLog => Some(Cause::CompletionLog),
        DelayReason::Perturbed => Some(Cause::Perturbed),
        DelayReason::Unknown => Some(Cause::Unknown),
    }
}
