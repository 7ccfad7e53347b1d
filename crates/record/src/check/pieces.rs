//! Finds requests that the kernel split or merged: one request of one side covers exactly several adjacent ones of the
//! other.

use iosonar_trace::Op;

use super::coverage::{Tiling, match_coverage};
use super::entry::Difference;

/// Removes from both lists the requests that cover each other. The rest is in no particular order.
pub fn match_pieces(missing: &mut Vec<Difference>, extra: &mut Vec<Difference>) -> Tiling {
    let same = |whole: &Difference| Some(whole.op);
    let (split, _) = take_covered(missing, extra, same);
    let (_, merged) = take_covered(extra, missing, same);
    // For a device without write-zeroes, the kernel writes zeroes as data.
    let zeros = |whole: &Difference| (whole.op == Op::WriteZeroes).then_some(Op::Write);
    let (written_out, _) = take_covered(missing, extra, zeros);
    // The rest are pieces that were matched with the wrong request, or that begin inside of one.
    let balanced = match_coverage(missing, extra);
    Tiling { split: split + written_out + balanced.split, merged: merged + balanced.merged }
}

/// Removes each whole that is covered by parts, and those parts. Returns the numbers of wholes and of parts. `part_op`
/// returns the operation of a whole's parts, if it may have any.
fn take_covered(
    wholes: &mut Vec<Difference>,
    parts: &mut Vec<Difference>,
    part_op: impl Fn(&Difference) -> Option<Op>,
) -> (u64, u64) {
    let before = (wholes.len(), parts.len());
    let mut places = Places::of(parts);
    wholes.retain(|whole| {
        let cover = part_op(whole).and_then(|op| places.cover(whole, op));
        cover.iter().flatten().for_each(|&place| places.take(place));
        cover.is_none()
    });
    let mut is_unjoined = places.is_unjoined().into_iter();
    parts.retain(|_| is_unjoined.next().unwrap_or(true));
    ((before.0 - wholes.len()) as u64, (before.1 - parts.len()) as u64)
}

/// A device, an operation, then position and length.
type Key = (Option<u16>, Op, u64, u64);

/// Parts, sorted by key; there may be millions. A place is an index in `sorted`.
struct Places {
    sorted: Vec<(Key, usize)>,
    /// Union-find over places, counted from one, with zero before the first: the next free place at or before each one.
    /// The parent of a free place is itself.
    free: Vec<usize>,
}

impl Places {
    fn of(parts: &[Difference]) -> Self {
        let key = |part: &Difference| (part.device, part.op, part.sector, part.sectors);
        let mut sorted: Vec<_> = parts.iter().enumerate().map(|(index, part)| (key(part), index)).collect();
        sorted.sort_unstable();
        let free = (0..=sorted.len()).collect();
        Self { sorted, free }
    }

    /// Adjacent free parts that cover `whole` exactly, the longest that fits at each step.
    fn cover(&mut self, whole: &Difference, op: Op) -> Option<Vec<usize>> {
        let end = whole.sector.checked_add(whole.sectors)?;
        let (mut at, mut cover) = (whole.sector, Vec::new());
        while at < end {
            let longest = (whole.device, op, at, end - at);
            let fitting = self.sorted.partition_point(|&(key, _)| key <= longest);
            let place = self.free_up_to(fitting).checked_sub(1)?;
            let (device, as_op, sector, sectors) = self.sorted[place].0;
            if (device, as_op, sector) != (whole.device, op, at) || sectors == 0 {
                return None;
            }
            cover.push(place);
            at += sectors;
        }
        (!cover.is_empty()).then_some(cover)
    }

    /// The last free place among the first `count`, counted from one; zero if there is none.
    fn free_up_to(&mut self, count: usize) -> usize {
        let mut at = count;
        while self.free[at] != at {
            // Path halving.
            self.free[at] = self.free[self.free[at]];
            at = self.free[at];
        }
        at
    }

    fn take(&mut self, place: usize) {
        self.free[place + 1] = place;
    }

    /// For each part, in the original order.
    fn is_unjoined(&self) -> Vec<bool> {
        let mut is_unjoined = vec![true; self.sorted.len()];
        for (place, &(_, index)) in self.sorted.iter().enumerate() {
            is_unjoined[index] = self.free[place + 1] == place + 1;
        }
        is_unjoined
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn write(sector: u64, sectors: u64) -> Difference {
        Difference { sector, sectors, op: Op::Write, at_ns: 0, device: None }
    }

    #[test]
    fn a_split_request_is_found_in_its_parts() {
        let mut missing = vec![write(0, 4096), write(9000, 8)];
        let mut extra = vec![write(2560, 1536), write(0, 2560), write(0, 8)];
        assert_eq!(match_pieces(&mut missing, &mut extra), Tiling { split: 1, merged: 0 });
        assert_eq!((missing, extra), (vec![write(9000, 8)], vec![write(0, 8)]));
    }

    #[test]
    fn merged_requests_are_found_in_the_whole() {
        let mut missing = vec![write(8, 8), write(0, 8), write(16, 8), write(8, 8)];
        let mut extra = vec![write(0, 24)];
        assert_eq!(match_pieces(&mut missing, &mut extra), Tiling { split: 0, merged: 3 });
        assert_eq!((missing, extra), (vec![write(8, 8)], vec![]));
    }

    #[test]
    fn each_of_several_equal_parts_is_used_once() {
        let mut missing = vec![write(0, 16), write(0, 16), write(0, 16)];
        let mut extra = vec![write(0, 8), write(8, 8), write(8, 8), write(0, 8), write(8, 4), write(0, 0)];
        assert_eq!(match_pieces(&mut missing, &mut extra), Tiling { split: 2, merged: 0 });
        extra.sort_unstable();
        assert_eq!((missing, extra), (vec![write(0, 16)], vec![write(0, 0), write(8, 4)]));
    }

    #[test]
    fn zeroes_that_the_kernel_writes_as_data_are_found() {
        let zeros = |sector, sectors| Difference { op: Op::WriteZeroes, ..write(sector, sectors) };
        let mut missing = vec![zeros(0, 24), write(100, 8), zeros(200, 8)];
        let mut extra = vec![write(0, 16), write(16, 8), zeros(100, 8), write(200, 4)];
        assert_eq!(match_pieces(&mut missing, &mut extra), Tiling { split: 1, merged: 0 });
        extra.sort_unstable();
        assert_eq!(missing, [write(100, 8), zeros(200, 8)], "data does not cover zeroes as such, nor a part the whole");
        assert_eq!(extra, [zeros(100, 8), write(200, 4)]);
    }

    #[test]
    fn parts_with_a_gap_or_another_operation_do_not_cover() {
        let mut missing = vec![write(0, 24)];
        let read = Difference { op: Op::Read, ..write(8, 8) };
        let mut extra = vec![write(0, 8), read, write(16, 16)];
        assert_eq!(match_pieces(&mut missing, &mut extra), Tiling::default());
        assert_eq!((missing.len(), extra.len()), (1, 3));
    }

    /// The same sectors several times, cut at other places each time.
    fn passes(cuts: &[Vec<bool>]) -> Vec<Difference> {
        let of_pass = |cuts: &Vec<bool>| {
            let mut parts = vec![write(0, 8)];
            for (&is_cut, at) in cuts.iter().zip(1..) {
                if is_cut {
                    parts.push(write(at * 8, 8));
                } else {
                    parts.last_mut().expect("the first").sectors += 8;
                }
            }
            parts
        };
        cuts.iter().flat_map(of_pass).collect()
    }

    proptest! {
        #[test]
        fn any_split_or_merge_is_found_and_a_lost_request_is_missing(
            submitted in prop::collection::vec(prop::collection::vec(any::<bool>(), 30), 4),
            recorded in prop::collection::vec(prop::collection::vec(any::<bool>(), 30), 4),
            lost in any::<prop::sample::Index>(),
        ) {
            let (mut missing, mut extra) = (passes(&submitted), passes(&recorded));
            let all = missing.len() as u64;
            let tiling = match_pieces(&mut missing, &mut extra);
            prop_assert_eq!((missing.len(), extra.len(), tiling.split + tiling.merged), (0, 0, all));

            let (mut missing, mut extra) = (passes(&submitted), passes(&recorded));
            let lost = extra.swap_remove(lost.index(extra.len()));
            match_pieces(&mut missing, &mut extra);
            let sectors = |of: &[Difference]| of.iter().map(|of| of.sectors).sum::<u64>();
            prop_assert_eq!(sectors(&missing), sectors(&extra) + lost.sectors);
        }
    }
}
