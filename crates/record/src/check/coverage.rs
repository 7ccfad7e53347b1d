//! Finds requests that were both split and merged, so that no single request shows it: both sides cover the same
//! sectors, each sector equally often.
//!
//! If sectors are requested repeatedly, parts can be combined in many ways, and the actual one cannot be determined.
//! But splitting and merging do not change how often each sector is transferred.

use super::entry::Difference;

/// Number of requests of the run that were found in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiling {
    /// Requests that are several in the recording.
    pub split: u64,
    /// Requests of which several are one in the recording.
    pub merged: u64,
}

/// Removes from both lists the requests that cover the same sectors equally often. The lists are compared in stretches
/// of overlapping requests.
pub fn match_coverage(missing: &mut Vec<Difference>, extra: &mut Vec<Difference>) -> Tiling {
    missing.sort_unstable_by_key(place);
    extra.sort_unstable_by_key(place);
    let mut is_found = (vec![false; missing.len()], vec![false; extra.len()]);
    let mut tiling = Tiling::default();
    let (mut m, mut e) = (0, 0);
    while m < missing.len() && e < extra.len() {
        let (count_missing, count_extra) = stretch(&missing[m..], &extra[e..]);
        let (to_m, to_e) = (m + count_missing, e + count_extra);
        if is_balanced(&missing[m..to_m], &extra[e..to_e]) {
            let found = mark(&missing[m..to_m], &mut is_found.0[m..to_m]);
            let pieces = mark(&extra[e..to_e], &mut is_found.1[e..to_e]);
            *(if pieces < found { &mut tiling.merged } else { &mut tiling.split }) += found;
        }
        (m, e) = (to_m, to_e);
    }
    remove(missing, is_found.0);
    remove(extra, is_found.1);
    tiling
}

fn place(request: &Difference) -> (Option<u16>, iosonar_trace::Op, u64) {
    (request.device, request.op, request.sector)
}

fn end(request: &Difference) -> u64 {
    request.sector.saturating_add(request.sectors)
}

/// The number of requests at the front of each side that form one stretch: each overlaps an earlier one.
fn stretch(missing: &[Difference], extra: &[Difference]) -> (usize, usize) {
    let (mut m, mut e) = (0, 0);
    let mut reached = None;
    loop {
        let next = match (missing.get(m), extra.get(e)) {
            (Some(missing), Some(extra)) if place(extra) < place(missing) => extra,
            (Some(missing), _) => missing,
            (None, Some(extra)) => extra,
            (None, None) => return (m, e),
        };
        let (device, op, sector) = place(next);
        reached = match reached {
            None => Some((device, op, end(next))),
            Some((stretch_device, stretch_op, until))
                if (stretch_device, stretch_op) == (device, op) && sector < until =>
            {
                Some((device, op, until.max(end(next))))
            }
            Some(_) => return (m, e),
        };
        if missing.get(m).is_some_and(|missing| std::ptr::eq(missing, next)) { m += 1 } else { e += 1 }
    }
}

/// Whether every sector is in as many requests of one side as of the other: at each sector, starts minus ends are
/// equal.
fn is_balanced(missing: &[Difference], extra: &[Difference]) -> bool {
    // starts(a) - ends(a) = starts(b) - ends(b), as starts(a) + ends(b) = starts(b) + ends(a).
    let boundaries = |starting: &[Difference], ending: &[Difference]| {
        let mut all: Vec<u64> = starting.iter().map(|request| request.sector).chain(ending.iter().map(end)).collect();
        all.sort_unstable();
        all
    };
    boundaries(missing, extra) == boundaries(extra, missing)
}

/// Marks the requests with data as found, and returns their number. A request without length covers no sector.
fn mark(requests: &[Difference], is_found: &mut [bool]) -> u64 {
    requests.iter().zip(&mut *is_found).for_each(|(request, is_found)| *is_found = request.sectors > 0);
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
    fn requests_cut_at_other_sectors_are_found_by_coverage() {
        let mut missing = vec![write(0, 8), write(8, 8), write(4, 8), write(100, 8), write(200, 4)];
        let mut extra = vec![write(0, 12), write(4, 12), write(100, 4), write(206, 4), write(300, 8)];
        assert_eq!(match_coverage(&mut missing, &mut extra), Tiling { split: 0, merged: 3 });
        assert_eq!((missing, extra.len()), (vec![write(100, 8), write(200, 4)], 3));
    }

    #[test]
    fn other_operations_other_devices_and_flushes_do_not_match() {
        let flush = Difference { op: Op::Flush, ..write(0, 0) };
        let mut missing = vec![write(0, 8), write(8, 8), flush, write(4, 0)];
        for other in [
            Difference { op: Op::Read, ..write(0, 16) },
            Difference { device: Some(1), ..write(0, 16) },
            write(0, 24),
            write(0, 4),
        ] {
            let mut extra = vec![other, write(8, 4)];
            assert_eq!(match_coverage(&mut missing, &mut extra), Tiling::default(), "{other:?}");
            assert_eq!((missing.len(), extra.len()), (4, 2));
        }
        assert_eq!(match_coverage(&mut missing, &mut vec![write(0, 16)]), Tiling { split: 0, merged: 2 });
        assert_eq!(missing.len(), 2, "requests without length cover no sector");
    }
}
