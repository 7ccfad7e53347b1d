//! Compares what a call returned with what the original returned.

use crate::{CallKind, CallOutcome, Family};

/// What became of an issued call.
pub fn compare(kind: CallKind, expected: (Option<i64>, i32), found: (i64, i32)) -> CallOutcome {
    let (Some(expected), expected_errno) = expected else { return CallOutcome::Same };
    match (expected_errno != 0 || expected < 0, found.1 != 0) {
        (true, true) if expected_errno == found.1 => CallOutcome::Same,
        (true, true) => CallOutcome::OtherErrno,
        (false, true) => CallOutcome::Failed,
        (true, false) => CallOutcome::Succeeded,
        (false, false) => values(kind, expected, found.0),
    }
}

/// Both succeeded. Descriptors and the lengths of link targets, attributes and handles differ without being wrong.
fn values(kind: CallKind, expected: i64, found: i64) -> CallOutcome {
    match kind.family() {
        Family::Read | Family::Write | Family::Copy if found < expected => CallOutcome::Fewer,
        Family::Read | Family::Write | Family::Copy if found > expected => CallOutcome::More,
        // Entries have other lengths on another file system, and come in another order.
        Family::List if (expected == 0) != (found == 0) => CallOutcome::OtherResult,
        Family::Seek if expected != found => CallOutcome::OtherResult,
        _ => CallOutcome::Same,
    }
}

/// Whether a listing returned other bytes than the original, which is not a mismatch.
pub fn is_other_listing(kind: CallKind, expected: Option<i64>, found: i64) -> bool {
    kind.family() == Family::List && expected.is_some_and(|expected| expected > 0 && found > 0 && expected != found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_compared_by_what_they_mean() {
        use CallKind::{Getdents64, Lseek, Openat, Read, Unlink};
        for (kind, expected, found, outcome) in [
            (Openat, (Some(3), 0), (17, 0), CallOutcome::Same),
            (Openat, (Some(-1), 2), (-1, 2), CallOutcome::Same),
            (Openat, (Some(-1), 2), (-1, 13), CallOutcome::OtherErrno),
            (Openat, (Some(-1), 2), (5, 0), CallOutcome::Succeeded),
            (Unlink, (Some(0), 0), (-1, 2), CallOutcome::Failed),
            (Read, (Some(100), 0), (50, 0), CallOutcome::Fewer),
            (Read, (Some(0), 0), (50, 0), CallOutcome::More),
            (Lseek, (Some(100), 0), (50, 0), CallOutcome::OtherResult),
            (Getdents64, (Some(100), 0), (48, 0), CallOutcome::Same),
            (Getdents64, (Some(0), 0), (48, 0), CallOutcome::OtherResult),
        ] {
            assert_eq!(compare(kind, expected, found), outcome, "{kind:?} {expected:?} {found:?}");
        }
        assert!(is_other_listing(Getdents64, Some(100), 48) && !is_other_listing(Getdents64, Some(0), 48));
    }
}
