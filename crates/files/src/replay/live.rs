//! What is counted of calls while a replay goes on.

use iosonar_pacing::live::{Live, Row, Words};

use crate::{CallKind, CallOutcome, CallResult, Family};

/// Counts calls; `is_timed` is whether they have times to keep.
pub fn of_calls(is_timed: bool) -> Live {
    let words = Words {
        plural: "calls",
        operation: |index| CallKind::ALL.get(index).map(|kind| kind.name()),
        outcome: |index| CallOutcome::ALL.get(index).map(|outcome| outcome.name()),
        has_waiting: false,
    };
    Live::new(words, is_timed)
}

/// What is counted of a row.
pub(super) fn row_of(row: &CallResult) -> Row {
    let issued = row.issued.filter(|_| row.outcome.is_issued());
    Row {
        operation: row.kind as usize,
        outcome: row.outcome as usize,
        device: 0,
        scheduled: row.scheduled,
        issued,
        latency: issued.and_then(|issued| Some(row.completed? - issued)),
        bytes: bytes_of(row),
        has_error: row.outcome.is_mismatch(),
        is_dropped: false,
        waiting: 0,
    }
}

/// Bytes that it read and wrote.
fn bytes_of(row: &CallResult) -> u64 {
    let moved = row.result.unwrap_or(-1).max(0) as u64;
    match row.kind.family() {
        _ if !row.outcome.is_issued() => 0,
        Family::Read | Family::Write => moved,
        Family::Copy => moved.saturating_mul(2),
        _ => 0,
    }
}
