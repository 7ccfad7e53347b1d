//! The verification section of a run's footer.

use iosonar_trace::run_info::{FinalPassCounts, Verification};

use super::Verify;
use super::checker::Checker;
use crate::verify::final_pass::FinalPassProgress;

/// Summarizes the verification of a run.
pub fn verification(mode: Verify, checker: &Checker, progress: Option<FinalPassProgress>) -> Verification {
    let (counts, findings) = (checker.counts, &checker.findings);
    let last = progress.map(|progress| FinalPassCounts {
        checked: progress.checked,
        sectors: progress.to_check,
        errors: progress.errors,
        mismatches: progress.mismatches,
        complete: progress.is_complete,
    });
    Verification {
        mode: mode.into(),
        known_pct: 100.0 * checker.expected_state.known_share(),
        read_sectors: counts.read,
        reread_sectors: counts.reread,
        undecided_sectors: counts.undecided,
        mismatches: findings.mismatches,
        errors: findings.errors,
        last,
    }
}
