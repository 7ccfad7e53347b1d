//! Which rows a journal has had before.

use std::collections::HashMap;

use super::RowId;

/// Numbers of rows in a chunk.
const CHUNK: u64 = 4096;

/// A set of rows. It takes a bit for each, and next to nothing once all of a chunk are in it.
#[derive(Default)]
pub struct RowSet(HashMap<(bool, u32, u64), Chunk>);

enum Chunk {
    Some { bits: Box<[u64; CHUNK as usize / 64]>, left: u64 },
    All,
}

impl RowSet {
    /// Adds a row. Returns whether it is new.
    pub fn insert(&mut self, id: RowId) -> bool {
        let RowId { of_program, pass, number } = id;
        let empty = || Chunk::Some { bits: Box::new([0; _]), left: CHUNK };
        let chunk = self.0.entry((of_program, pass, number / CHUNK)).or_insert_with(empty);
        let Chunk::Some { bits, left } = chunk else { return false };
        let (word, bit) = (&mut bits[(number % CHUNK / 64) as usize], 1 << (number % 64));
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        *left -= 1;
        if *left == 0 {
            *chunk = Chunk::All;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_row_is_new_once(rows in prop::collection::vec((any::<bool>(), 0_u32..2, 4000_u64..4200), 0..300)) {
            let (mut seen, mut model) = (RowSet::default(), HashSet::new());
            for (of_program, pass, number) in rows {
                let row = RowId { of_program, pass, number };
                prop_assert_eq!(seen.insert(row), model.insert((of_program, pass, number)));
            }
        }
    }

    #[test]
    fn a_full_chunk_still_knows_its_rows() {
        let mut seen = RowSet::default();
        let rows = || (0..3 * CHUNK).map(|number| RowId { of_program: false, pass: 1, number });
        assert!(rows().all(|row| seen.insert(row)));
        assert!(!rows().any(|row| seen.insert(row)));
        assert!(seen.insert(RowId { of_program: false, pass: 1, number: u64::MAX }));
    }
}
