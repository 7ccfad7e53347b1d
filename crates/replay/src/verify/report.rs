//! What a run says of its verification.

use iosonar_trace::run_info::{FinalPassCounts, Verification};

use super::Verify;
use super::checker::Checker;
use crate::verify::final_pass::FinalPassProgress;

/// Of a run that has ended.
pub fn verification(mode: Verify, checker: &Checker, far: Option<FinalPassProgress>) -> Verification {
    let (counts, findings) = (checker.counts, &checker.findings);
    let last = far.map(|far| FinalPassCounts {
        checked: far.checked,
        sectors: far.to_check,
        errors: far.errors,
        mismatches: far.mismatches,
        complete: far.is_whole,
    });
    Verification {
        mode: mode.into(),
        known_pct: 100.0 * checker.ledger.share(),
        read_sectors: counts.read,
        reread_sectors: counts.reread,
        undecided_sectors: counts.undecided,
        mismatches: findings.mismatches,
        errors: findings.errors,
        last,
    }
}
