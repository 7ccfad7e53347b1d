//! Sizes: the most frequent exactly, the others in groups, each with its mean as the size.

use std::collections::BTreeMap;

use iosonar_trace::Op;

use super::sample::SampledRequest;
use crate::Sizes;

/// Sizes with a weight of their own.
const EXACT: usize = 48;
/// Groups of the other sizes.
const GROUPS: usize = 16;

/// The sizes, and their text.
pub(super) fn fit(requests: &[SampledRequest]) -> Result<(Sizes, String), String> {
    let mut counts = BTreeMap::<u32, u64>::new();
    for asked in requests.iter().filter(|asked| asked.op != Op::Flush) {
        *counts.entry(asked.sectors).or_default() += 1;
    }
    if counts.is_empty() {
        counts.insert(8, 1);
    }
    let mut frequent: Vec<(u32, u64)> = counts.iter().map(|(size, count)| (*size, *count)).collect();
    frequent.sort_by_key(|(size, count)| (std::cmp::Reverse(*count), *size));
    let mut rest = frequent.split_off(frequent.len().min(EXACT));
    rest.sort_unstable();
    let all: u64 = rest.iter().map(|(_, count)| count).sum();
    let mut chosen: BTreeMap<u32, u64> = frequent.into_iter().collect();
    let (mut weight, mut sum, mut upto, mut group) = (0, 0.0, 0, 0);
    for (index, (size, count)) in rest.iter().enumerate() {
        weight += count;
        upto += count;
        sum += f64::from(*size) * *count as f64;
        let reached = (upto as f64 / all as f64 * GROUPS as f64) as usize;
        if reached > group || index + 1 == rest.len() {
            let mean = (sum / weight as f64).round() as u32;
            *chosen.entry(mean).or_default() += weight;
            (weight, sum, group) = (0, 0.0, reached);
        }
    }
    let parts = chosen.iter().map(|(size, count)| match chosen.len() {
        1 => text(*size),
        _ => format!("{}:{count}", text(*size)),
    });
    let text = parts.collect::<Vec<_>>().join(",");
    Ok((text.parse()?, text))
}

/// In KiB or MiB, where it is a whole number of them.
fn text(sectors: u32) -> String {
    match sectors {
        n if n % 2048 == 0 => format!("{}M", n / 2048),
        n if n % 2 == 0 => format!("{}k", n / 2),
        n => format!("{n}s"),
    }
}
