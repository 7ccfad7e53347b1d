//! Findings of verification: where a sector is wrong, the expected and the actual content, and when it was detected.

use std::fmt::{self, Display};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::text::human;

/// In which way a sector is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// It holds what an earlier request of this run wrote there: the later write was lost, or the read was stale.
    Stale,
    /// It holds nothing that this run wrote.
    Lost,
    /// Stale or lost, but another sector of the same write arrived: the write was torn.
    Torn,
    /// It holds data of another sector, or of another target.
    Misdirected,
    /// This run wrote it, but bits have changed.
    Damaged,
    /// It holds data that had not been written yet, or that no request writes.
    Unexpected,
    /// The target reported a successful read, but left the buffer untouched.
    Unread,
    /// The target could not read the sector when iosonar checked it.
    Unreadable,
}

impl FindingKind {
    /// Stale and lost become torn if another sector of the same write arrived (`is_torn`).
    pub fn torn_if(self, is_torn: bool) -> Self {
        if is_torn && matches!(self, Self::Stale | Self::Lost) { Self::Torn } else { self }
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Lost => "lost",
            Self::Torn => "torn",
            Self::Misdirected => "misdirected",
            Self::Damaged => "damaged",
            Self::Unexpected => "unexpected",
            Self::Unread => "not read",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The pass that detected a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// A read of the load.
    Read,
    /// The read right after a write.
    Reread,
    /// The pass over all written sectors after the run.
    Final,
}

/// Adjacent sectors that are wrong in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// In which way they are wrong.
    pub kind: FindingKind,
    /// The pass that detected it.
    pub pass: Pass,
    /// The index of the target in the run.
    pub target: u16,
    /// The first wrong sector.
    pub sector: u64,
    /// How many adjacent sectors are wrong.
    pub sectors: u64,
    /// The sequence number of the request whose data they should hold, if a request of this run wrote them.
    pub expected_sequence_number: Option<u64>,
    /// Whether they should hold zeros: zeros were written, or they were discarded on a target that then returns zeros.
    pub expected_zeros: bool,
    /// The sequence number of the request whose data they hold, if it is of this run.
    pub found_sequence_number: Option<u64>,
    /// Number in the load of the request whose data was found.
    pub found_request: Option<u64>,
    /// The sector to which the data found in the first sector belongs.
    pub found_sector: Option<u64>,
    /// The index of the target to which that data belongs.
    pub found_target: Option<u16>,
    /// Number in the load of the request that detected it (with [`Pass::Reread`]: the write).
    pub request: Option<u64>,
    /// When it was detected, since virtual zero.
    pub at_ns: i64,
    /// The error number of [`FindingKind::Unreadable`].
    pub errno: Option<i32>,
}

impl Finding {
    /// Whether `other` begins at its end and is otherwise the same finding.
    pub fn is_continued_by(&self, other: &Self) -> bool {
        let shift = |f: &Self| f.found_sector.map(|sector| sector.wrapping_sub(f.sector));
        (self.target, self.sector + self.sectors) == (other.target, other.sector)
            && (self.kind, self.pass, self.request, self.at_ns) == (other.kind, other.pass, other.request, other.at_ns)
            && (self.expected_sequence_number, self.found_sequence_number)
                == (other.expected_sequence_number, other.found_sequence_number)
            && self.expected_zeros == other.expected_zeros
            && (shift(self), self.found_target, self.errno) == (shift(other), other.found_target, other.errno)
    }
}

/// A finding and the paths of all targets, to be printed.
struct Description<'a>(&'a Finding, &'a [PathBuf]);

impl Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, self.1)
    }
}

impl Finding {
    /// A sentence for people. It names the target if the run has several.
    pub fn describe<'a>(&'a self, targets: &'a [PathBuf]) -> impl Display + 'a {
        Description(self, targets)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, targets: &[PathBuf]) -> fmt::Result {
        let name = |target: u16| targets.get(usize::from(target)).filter(|_| targets.len() > 1);
        let Self { sector, sectors, .. } = self;
        match sectors {
            1 => write!(f, "sector {sector}")?,
            _ => write!(f, "sectors {sector} to {}", sector + sectors - 1)?,
        }
        if let Some(name) = name(self.target) {
            write!(f, " of {}", name.display())?;
        }
        write!(f, ": {}", self.kind.name())?;
        match self.expected_sequence_number {
            Some(number) => write!(f, "; expected sequence number {number}")?,
            None if self.expected_zeros => write!(f, "; expected zeros")?,
            None if self.kind != FindingKind::Unreadable => write!(f, "; expected no write of this run")?,
            None => {}
        }
        match (self.found_sequence_number, self.kind) {
            (_, FindingKind::Unread | FindingKind::Unreadable) => {}
            (Some(number), _) => write!(f, ", found {number}")?,
            (None, _) => write!(f, ", found nothing of this run")?,
        }
        if let Some(request) = self.found_request {
            write!(f, " (request {request})")?;
        }
        if let (Some(sector), Some(target)) = (self.found_sector, self.found_target) {
            write!(f, ", which belongs to sector {sector}")?;
            if let Some(name) = name(target).filter(|_| target != self.target) {
                write!(f, " of {}", name.display())?;
            }
        }
        if let Some(errno) = self.errno {
            write!(f, " ({})", crate::system_text(&std::io::Error::from_raw_os_error(errno)))?;
        }
        let seen = human::at_second(self.at_ns as f64 / 1e9);
        match (self.pass, self.request) {
            (Pass::Final, _) => write!(f, "; seen at the end, {seen}"),
            (Pass::Read, Some(request)) => write!(f, "; seen by request {request} at {seen}"),
            (Pass::Reread, Some(request)) => write!(f, "; seen right after request {request} at {seen}"),
            (_, None) => write!(f, "; seen at {seen}"),
        }
    }
}
