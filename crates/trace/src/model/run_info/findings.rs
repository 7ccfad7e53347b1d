//! What verification found: each lie with its place, what should have been there, what was, and when it was seen.

use std::fmt::{self, Display};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::text::human;

/// How a sector is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// It holds what an earlier request of this run wrote there: the later write was lost, or the read was stale.
    Stale,
    /// It holds nothing that this run wrote.
    Lost,
    /// As one of these, but another sector of the same write arrived: the write was torn.
    Torn,
    /// It holds what was meant for another sector, or for another target.
    Misdirected,
    /// It was written by this run, but bits are not as they were.
    Damaged,
    /// It holds what was not there to be written yet, or never was.
    Unexpected,
    /// The target said that it had read the sector, but brought nothing.
    Unread,
    /// The target could not read the sector, when iosonar itself asked for it.
    Unreadable,
}

impl FindingKind {
    /// What it is if another sector of the same write arrived.
    pub fn torn_if(self, is_torn: bool) -> Self {
        if is_torn && matches!(self, Self::Stale | Self::Lost) { Self::Torn } else { self }
    }

    /// In a word or two.
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

/// When it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// By a read of the load.
    Read,
    /// By the read at once after a write.
    Reread,
    /// At the end.
    Final,
}

/// Sectors side by side that are wrong in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How.
    pub kind: FindingKind,
    /// When it was seen.
    pub pass: Pass,
    /// Which of the run's targets.
    pub target: u16,
    /// The first sector.
    pub sector: u64,
    /// How many.
    pub sectors: u64,
    /// What they should hold, if that is what a request wrote.
    pub expected_sequence_number: Option<u64>,
    /// Whether they should hold zeros: they were discarded on a target that then returns zeros, or zeros were written.
    pub expected_zeros: bool,
    /// What they hold, if a request of this run wrote it.
    pub found_sequence_number: Option<u64>,
    /// Number in the load of the request that wrote what was found.
    pub found_request: Option<u64>,
    /// Where what was found in the first belongs.
    pub found_sector: Option<u64>,
    /// On which target that is.
    pub found_target: Option<u16>,
    /// The request that saw it (with [`Pass::Reread`]: the write), by its number in the load.
    pub request: Option<u64>,
    /// When it was seen, since virtual zero.
    pub at_ns: i64,
    /// The error number of [`FindingKind::Unreadable`].
    pub errno: Option<i32>,
}

impl Finding {
    /// Whether `other` goes on where it ends.
    pub fn goes_on_with(&self, other: &Self) -> bool {
        let place = |f: &Self| f.found_sector.map(|sector| sector.wrapping_sub(f.sector));
        (self.target, self.sector + self.sectors) == (other.target, other.sector)
            && (self.kind, self.pass, self.request, self.at_ns) == (other.kind, other.pass, other.request, other.at_ns)
            && (self.expected_sequence_number, self.found_sequence_number)
                == (other.expected_sequence_number, other.found_sequence_number)
            && self.expected_zeros == other.expected_zeros
            && (place(self), self.found_target, self.errno) == (place(other), other.found_target, other.errno)
    }
}

/// A finding in words.
struct Told<'a>(&'a Finding, &'a [PathBuf]);

impl Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.tell(f, self.1)
    }
}

impl Finding {
    /// It in words; the run's targets are named where there are several.
    pub fn on<'a>(&'a self, targets: &'a [PathBuf]) -> impl Display + 'a {
        Told(self, targets)
    }

    fn tell(&self, f: &mut fmt::Formatter<'_>, targets: &[PathBuf]) -> fmt::Result {
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
            write!(f, " ({})", std::io::Error::from_raw_os_error(errno))?;
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
