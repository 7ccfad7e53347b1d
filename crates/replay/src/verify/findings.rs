//! What a verified run found.

use iosonar_trace::run_info::{Finding, FindingKind, Pass};

use super::header::{Found, Header};

/// Findings that are kept; all are counted.
pub const KEPT: usize = 100;

/// One sector that was found like this.
pub fn finding(
    kind: FindingKind,
    pass: Pass,
    (target, sector): (u16, u64),
    expected: Option<u64>,
    found: &Found,
) -> Finding {
    let header = match found {
        Found::Own(header) => Some(header),
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

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The first ones.
    pub kept: Vec<Finding>,
    /// Sectors that were not what they had to be.
    pub mismatches: u64,
    /// Sectors that could not be read.
    pub errors: u64,
}

impl Findings {
    /// Takes one.
    pub fn add(&mut self, finding: Finding) {
        match finding.kind {
            FindingKind::Unreadable => self.errors += finding.sectors,
            _ => self.mismatches += finding.sectors,
        }
        if let Some(last) = self.kept.last_mut()
            && last.is_continued_by(&finding)
        {
            last.sectors += finding.sectors;
        } else if self.kept.len() < KEPT {
            self.kept.push(finding);
        }
    }
}

/// What kind of lie it is that a sector was found like this.
pub fn kind_of(found: &Found, at: (u16, u64), expected: Option<u64>, is_written: bool) -> FindingKind {
    match found {
        Found::Own(header) if (header.target, header.sector) != at => FindingKind::Misdirected,
        // Where zeros or nothing were expected, a write of this run is from before, or never was.
        Found::Own(header) if expected.map_or(is_written, |expected| header.sequence_number < expected) => {
            FindingKind::Stale
        }
        Found::Own(_) => FindingKind::Unexpected,
        Found::Damaged(_) => FindingKind::Damaged,
        Found::Zeros | Found::Foreign => FindingKind::Lost,
        Found::Unread => FindingKind::Unread,
    }
}
