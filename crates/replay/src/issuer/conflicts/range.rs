//! What overlaps is asked of.

/// The part of a target that a request touches, and whether it modifies it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Which target.
    pub target: u16,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Whether its content may change.
    pub modifies: bool,
}

impl Range {
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.target == other.target
            && self.sector < other.sector + other.sectors
            && other.sector < self.sector + self.sectors
    }
}
