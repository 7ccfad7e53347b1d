//! Requests that the kernel split or merged: one of one side covers exactly several adjacent ones of the other.

use std::collections::BTreeMap;

use iosonar_trace::Op;

use super::Difference;

/// How many requests of the run were found that way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiling {
    /// Those that are several in the recording.
    pub split: u64,
    /// Those of which several are one in the recording.
    pub merged: u64,
}

/// Takes out of both lists what covers one another.
pub fn take_tiled(missing: &mut Vec<Difference>, extra: &mut Vec<Difference>) -> Tiling {
    let same = |whole: &Difference| Some(whole.op);
    let (split, _) = take_covered(missing, extra, same);
    let (_, merged) = take_covered(extra, missing, same);
    // Where a device can't write zeros by itself, the kernel writes them as data.
    let zeros = |whole: &Difference| (whole.op == Op::WriteZeroes).then_some(Op::Write);
    let (written_out, _) = take_covered(missing, extra, zeros);
    Tiling { split: split + written_out, merged }
}

/// Takes out each whole that is covered by parts, and those parts. Returns how many wholes and parts that were. `as_parts`
/// tells the operation of a whole's parts, if it may have any.
fn take_covered(
    wholes: &mut Vec<Difference>,
    parts: &mut Vec<Difference>,
    as_parts: impl Fn(&Difference) -> Option<Op>,
) -> (u64, u64) {
    let mut taken_parts = 0;
    let before = wholes.len();
    let mut by_start: ByStart = BTreeMap::new();
    for (index, part) in parts.iter().enumerate() {
        by_start.entry((part.device, part.op, part.sector, part.sectors)).or_default().push(index);
    }
    let mut is_taken = vec![false; parts.len()];
    wholes.retain(|whole| {
        let Some(cover) = as_parts(whole).and_then(|op| cover(&by_start, whole, op)) else { return true };
        for key in cover {
            let indices = by_start.get_mut(&key).expect("the cover is made of these");
            is_taken[indices.pop().expect("none is empty")] = true;
            taken_parts += 1;
            if indices.is_empty() {
                by_start.remove(&key);
            }
        }
        false
    });
    let mut is_taken = is_taken.into_iter();
    parts.retain(|_| !is_taken.next().unwrap_or(false));
    ((before - wholes.len()) as u64, taken_parts)
}

/// A device, an operation, then position and length.
type Key = (Option<u16>, Op, u64, u64);

/// The places of such parts in their list.
type ByStart = BTreeMap<Key, Vec<usize>>;

/// Adjacent parts from the start of `whole` to its end, the longest that fits at each step.
fn cover(by_start: &ByStart, whole: &Difference, op: Op) -> Option<Vec<Key>> {
    let end = whole.sector.checked_add(whole.sectors)?;
    let (mut at, mut cover) = (whole.sector, Vec::new());
    while at < end {
        let fitting = (whole.device, op, at, 1)..=(whole.device, op, at, end - at);
        let (&key, _) = by_start.range(fitting).next_back()?;
        cover.push(key);
        at += key.3;
    }
    (!cover.is_empty()).then_some(cover)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(sector: u64, sectors: u64) -> Difference {
        Difference { sector, sectors, op: Op::Write, at_ns: 0, device: None }
    }

    #[test]
    fn a_split_request_is_found_in_its_parts() {
        let mut missing = vec![write(0, 4096), write(9000, 8)];
        let mut extra = vec![write(2560, 1536), write(0, 2560), write(0, 8)];
        assert_eq!(take_tiled(&mut missing, &mut extra), Tiling { split: 1, merged: 0 });
        assert_eq!((missing, extra), (vec![write(9000, 8)], vec![write(0, 8)]));
    }

    #[test]
    fn merged_requests_are_found_in_the_whole() {
        let mut missing = vec![write(8, 8), write(0, 8), write(16, 8), write(8, 8)];
        let mut extra = vec![write(0, 24)];
        assert_eq!(take_tiled(&mut missing, &mut extra), Tiling { split: 0, merged: 3 });
        assert_eq!((missing, extra), (vec![write(8, 8)], vec![]));
    }

    #[test]
    fn zeros_that_the_kernel_writes_as_data_are_found() {
        let zeros = |sector, sectors| Difference { op: Op::WriteZeroes, ..write(sector, sectors) };
        let mut missing = vec![zeros(0, 24), write(100, 8), zeros(200, 8)];
        let mut extra = vec![write(0, 16), write(16, 8), zeros(100, 8), write(200, 4)];
        assert_eq!(take_tiled(&mut missing, &mut extra), Tiling { split: 1, merged: 0 });
        assert_eq!(missing, [write(100, 8), zeros(200, 8)], "data is no zeros, and a part is not all");
        assert_eq!(extra, [zeros(100, 8), write(200, 4)]);
    }

    #[test]
    fn a_gap_an_overhang_or_another_operation_is_no_cover() {
        let mut missing = vec![write(0, 24)];
        let read = Difference { op: Op::Read, ..write(8, 8) };
        let mut extra = vec![write(0, 8), read, write(16, 16)];
        assert_eq!(take_tiled(&mut missing, &mut extra), Tiling::default());
        assert_eq!((missing.len(), extra.len()), (1, 3));
    }
}
