//! Findings of verification.

use iosonar_trace::run_info::{Finding, FindingKind, Pass};

use super::header::{Found, Header};

/// Maximum number of findings kept; all are counted.
pub const MAX_KEPT: usize = 100;

/// A finding for one sector.
pub fn finding(
    kind: FindingKind,
    pass: Pass,
    (target, sector): (u16, u64),
    expected: Option<u64>,
    found: &Found,
) -> Finding {
    let header = match found {
        Found::Written(header) => Some(header),
        _ => None,
    };
    let damaged = match found {
        Found::Damaged(sequence_number) => Some(*sequence_number),
        _ => None,
    };
    Finding {
        kind,
        pass,
        target,
        sector,
        sectors: 1,
        expected_sequence_number: expected,
        expected_zeros: false,
        found_sequence_number: header.map(|h| h.sequence_number).or(damaged),
        found_request: header.map(|h: &Header| h.request),
        found_sector: header.filter(|_| kind == FindingKind::Misdirected).map(|h| h.sector),
        found_target: header.filter(|_| kind == FindingKind::Misdirected).map(|h| h.target),
        request: None,
        at_ns: 0,
        errno: None,
    }
}

/// All findings.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The first findings, as many as are kept.
    pub kept: Vec<Finding>,
    /// Sectors with wrong content.
    pub mismatches: u64,
    /// Unreadable sectors.
    pub errors: u64,
}

impl Findings {
    /// Adds a finding, joined with the last one if it continues that.
    pub fn add(&mut self, finding: Finding) {
        match finding.kind {
            FindingKind::Unreadable => self.errors += finding.sectors,
            _ => self.mismatches += finding.sectors,
        }
        if let Some(last) = self.kept.last_mut()
            && last.is_continued_by(&finding)
        {
            last.sectors += finding.sectors;
        } else if self.kept.len() < MAX_KEPT {
            self.kept.push(finding);
        }
    }
}

/// Classifies a sector with wrong content.
pub fn kind_of(found: &Found, at: (u16, u64), expected: Option<u64>, expects_content: bool) -> FindingKind {
    match found {
        Found::Written(header) if (header.target, header.sector) != at => FindingKind::Misdirected,
        // If no write of this run was expected, it is an earlier one.
        Found::Written(header) if expected.map_or(expects_content, |expected| header.sequence_number < expected) => {
            FindingKind::Stale
        }
        Found::Written(_) => FindingKind::Unexpected,
        Found::Damaged(_) => FindingKind::Damaged,
        Found::Zeros | Found::Foreign => FindingKind::Lost,
        Found::Unread => FindingKind::Unread,
    }
}
