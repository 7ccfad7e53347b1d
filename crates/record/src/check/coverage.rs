//! Requests that were split and merged in a way that no request shows by itself: both sides cover the same sectors, each
//! equally often.
//!
//! Where places are asked for again and again, there are many ways to put parts together, and the one that was taken is not
//! to be told. But splitting and merging leave alone how often each sector is transferred.

use super::entry::Difference;

/// How many requests of the run were found in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiling {
    /// Those that are several in the recording.
    pub split: u64,
    /// Those of which several are one in the recording.
    pub merged: u64,
}

/// Takes out of both lists what covers the same sectors equally often, each stretch of them for itself that no request
/// crosses the ends of.
pub fn take_balanced(missing: &mut Vec<Difference>, extra: &mut Vec<Difference>) -> Tiling {
    missing.sort_unstable_by_key(place);
    extra.sort_unstable_by_key(place);
    let mut is_found = (vec![false; missing.len()], vec![false; extra.len()]);
    let mut tiling = Tiling::default();
    let (mut m, mut e) = (0, 0);
    while m < missing.len() && e < extra.len() {
        let (of_missing, of_extra) = stretch(&missing[m..], &extra[e..]);
        let (to_m, to_e) = (m + of_missing, e + of_extra);
        if is_balanced(&missing[m..to_m], &extra[e..to_e]) {
            let found = mark(&missing[m..to_m], &mut is_found.0[m..to_m]);
            let by = mark(&extra[e..to_e], &mut is_found.1[e..to_e]);
            *(if by < found { &mut tiling.merged } else { &mut tiling.split }) += found;
        }
        (m, e) = (to_m, to_e);
    }
    remove(missing, is_found.0);
    remove(extra, is_found.1);
    tiling
}

fn place(of: &Difference) -> (Option<u16>, iosonar_trace::Op, u64) {
    (of.device, of.op, of.sector)
}

fn end(of: &Difference) -> u64 {
    of.sector.saturating_add(of.sectors)
}

/// How many of each side, from their beginnings on, hang together by common sectors.
fn stretch(missing: &[Difference], extra: &[Difference]) -> (usize, usize) {
    let (mut m, mut e) = (0, 0);
    let mut reached = None;
    loop {
        let next = match (missing.get(m), extra.get(e)) {
            (Some(of_missing), Some(of_extra)) if place(of_extra) < place(of_missing) => of_extra,
            (Some(of_missing), _) => of_missing,
            (None, Some(of_extra)) => of_extra,
            (None, None) => return (m, e),
        };
        let (device, op, sector) = place(next);
        reached = match reached {
            None => Some((device, op, end(next))),
            Some((on, does, until)) if (on, does) == (device, op) && sector < until => {
                Some((on, does, until.max(end(next))))
            }
            Some(_) => return (m, e),
        };
        if missing.get(m).is_some_and(|of| std::ptr::eq(of, next)) { m += 1 } else { e += 1 }
    }
}

/// Whether every sector is in as many requests of one side as of the other: at each place as many more begin than end.
fn is_balanced(missing: &[Difference], extra: &[Difference]) -> bool {
    let turns = |beginning: &[Difference], ending: &[Difference]| {
        let mut all: Vec<u64> = beginning.iter().map(|of| of.sector).chain(ending.iter().map(end)).collect();
        all.sort_unstable();
        all
    };
    turns(missing, extra) == turns(extra, missing)
}

/// Marks those that are found, and returns how many that are. What has no length covers nothing, and is never among them.
fn mark(of: &[Difference], is_found: &mut [bool]) -> u64 {
    of.iter().zip(&mut *is_found).for_each(|(of, is_found)| *is_found = of.sectors > 0);
    is_found.iter().filter(|is_found| **is_found).count() as u64
}

fn remove(from: &mut Vec<Difference>, is_found: Vec<bool>) {
    let mut is_found = is_found.into_iter();
    from.retain(|_| !is_found.next().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Op;

    use super::*;

    fn write(sector: u64, sectors: u64) -> Difference {
        Difference { sector, sectors, op: Op::Write, at_ns: 0, device: None }
    }

    #[test]
    fn what_begins_and_ends_at_different_places_is_found_by_its_sectors() {
        let mut missing = vec![write(0, 8), write(8, 8), write(4, 8), write(100, 8), write(200, 4)];
        let mut extra = vec![write(0, 12), write(4, 12), write(100, 4), write(206, 4), write(300, 8)];
        assert_eq!(take_balanced(&mut missing, &mut extra), Tiling { split: 0, merged: 3 });
        assert_eq!((missing, extra.len()), (vec![write(100, 8), write(200, 4)], 3));
    }

    #[test]
    fn operations_devices_and_flushes_are_kept_apart() {
        let flush = Difference { op: Op::Flush, ..write(0, 0) };
        let mut missing = vec![write(0, 8), write(8, 8), flush, write(4, 0)];
        for other in [
            Difference { op: Op::Read, ..write(0, 16) },
            Difference { device: Some(1), ..write(0, 16) },
            write(0, 24),
            write(0, 4),
        ] {
            let mut extra = vec![other, write(8, 4)];
            assert_eq!(take_balanced(&mut missing, &mut extra), Tiling::default(), "{other:?}");
            assert_eq!((missing.len(), extra.len()), (4, 2));
        }
        assert_eq!(take_balanced(&mut missing, &mut vec![write(0, 16)]), Tiling { split: 0, merged: 2 });
        assert_eq!(missing.len(), 2, "what has no length is not found by its sectors");
    }
}
