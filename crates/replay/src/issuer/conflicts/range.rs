//! Ranges of sectors to check for overlaps.

/// The sectors that a request touches, and whether it modifies them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Index of the target.
    pub target: u16,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Whether it may change the content.
    pub modifies: bool,
}

impl Range {
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.target == other.target
            && self.sector < other.sector + other.sectors
            && other.sector < self.sector + self.sectors
    }
}
