//! What a run discarded or zeroed itself: reads there return zeros however well the target was filled before.

use iosonar_trace::{IoResult, Op, Outcome, SECTOR_BYTES};

/// Parts of a target that are told apart. Their bits take 1 MiB for each target that has discards.
const MAX_PARTS: u64 = 1 << 23;

/// The discarded and zeroed parts of all targets.
#[derive(Clone, Debug, Default)]
pub struct Zeroed(Vec<Parts>);

/// Those of one target.
#[derive(Clone, Debug)]
struct Parts {
    /// Sectors of a part.
    size: u64,
    count: u64,
    /// A bit for each part; empty before the first discard.
    bits: Vec<u64>,
    bytes: u64,
}

impl Zeroed {
    /// Nothing yet on targets of so many sectors. Other targets are ignored.
    pub fn new(targets: impl IntoIterator<Item = u64>) -> Self {
        let parts = targets.into_iter().map(|sectors| {
            let size = sectors.div_ceil(MAX_PARTS).max(1);
            Parts { size, count: sectors.div_ceil(size), bits: Vec::new(), bytes: 0 }
        });
        Self(parts.collect())
    }

    /// Adds a row if it discarded or zeroed its range.
    pub fn add(&mut self, target: u16, record: &IoResult) {
        if matches!(record.op, Op::Discard | Op::WriteZeroes)
            && record.outcome == Outcome::Ok
            && let Some(parts) = self.0.get_mut(usize::from(target))
        {
            parts.add(record);
        }
    }

    /// Whether a row touches what was added.
    pub fn touches(&self, target: u16, record: &IoResult) -> bool {
        self.0.get(usize::from(target)).is_some_and(|parts| parts.touches(record))
    }

    /// Bytes that were discarded or zeroed on a target, repeatedly or not.
    pub fn bytes(&self, target: usize) -> u64 {
        self.0.get(target).map_or(0, |parts| parts.bytes)
    }
}

impl Parts {
    fn add(&mut self, record: &IoResult) {
        self.bytes += record.sectors.0 * SECTOR_BYTES;
        if self.bits.is_empty() {
            self.bits = vec![0; self.count.div_ceil(64) as usize];
        }
        for (word, mask) in self.masks(record) {
            self.bits[word] |= mask;
        }
    }

    fn touches(&self, record: &IoResult) -> bool {
        !self.bits.is_empty() && self.masks(record).any(|(word, mask)| self.bits[word] & mask != 0)
    }

    /// The words that the range of a row concerns, each with its bits.
    fn masks(&self, record: &IoResult) -> impl Iterator<Item = (usize, u64)> + use<> {
        let first = (record.sector.0 / self.size).min(self.count);
        let end = (record.sector.0 + record.sectors.0).div_ceil(self.size).min(self.count);
        (first / 64..end.div_ceil(64)).map(move |word| {
            let from = first.saturating_sub(word * 64);
            let to = (end - word * 64).min(64);
            (word as usize, (u64::MAX << from) & (u64::MAX >> (64 - to)))
        })
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Nanos, Request, Sector, Sectors};
    use proptest::prelude::*;

    use super::*;

    fn row(op: Op, sector: u64, sectors: u64) -> IoResult {
        let request = Request::new(Nanos(0), op, Sector(sector), Sectors(sectors));
        IoResult { outcome: Outcome::Ok, ..IoResult::of(&request, 0) }
    }

    #[test]
    fn only_successful_discards_and_zeroing_count() {
        let mut zeroed = Zeroed::new([1 << 20, 1 << 20]);
        zeroed.add(0, &row(Op::Write, 0, 8));
        zeroed.add(0, &IoResult { outcome: Outcome::Error, ..row(Op::Discard, 0, 8) });
        assert!(!zeroed.touches(0, &row(Op::Read, 0, 8)) && zeroed.bytes(0) == 0);
        zeroed.add(0, &row(Op::Discard, 0, 8));
        zeroed.add(0, &row(Op::WriteZeroes, 64, 8));
        zeroed.add(7, &row(Op::Discard, 0, 8));
        assert!(zeroed.touches(0, &row(Op::Read, 7, 1)) && zeroed.touches(0, &row(Op::Read, 0, 1 << 20)));
        assert!(!zeroed.touches(0, &row(Op::Read, 8, 56)) && !zeroed.touches(1, &row(Op::Read, 0, 8)));
        assert_eq!((zeroed.bytes(0), zeroed.bytes(1), zeroed.bytes(7)), (16 * SECTOR_BYTES, 0, 0));
    }

    #[test]
    fn large_targets_have_larger_parts() {
        let mut zeroed = Zeroed::new([1 << 40]);
        zeroed.add(0, &row(Op::Discard, (1 << 40) - 8, 8));
        assert!(zeroed.touches(0, &row(Op::Read, (1 << 40) - 8, 8)) && !zeroed.touches(0, &row(Op::Read, 0, 8)));
        assert_eq!(zeroed.0[0].bits.len() as u64 * 64, MAX_PARTS);
    }

    proptest! {
        #[test]
        fn ranges_touch_as_sectors_do(added in prop::collection::vec((0_u64..500, 1_u64..200), 0..4), read in (0_u64..500, 1_u64..200)) {
            let mut zeroed = Zeroed::new([640]);
            let mut model = [false; 800];
            for (sector, sectors) in added {
                zeroed.add(0, &row(Op::Discard, sector, sectors));
                model[sector as usize..(sector + sectors) as usize].fill(true);
            }
            model[640..].fill(false);
            let (sector, sectors) = read;
            let expected = model[sector as usize..(sector + sectors) as usize].contains(&true);
            prop_assert_eq!(zeroed.touches(0, &row(Op::Read, sector, sectors)), expected);
        }
    }
}
