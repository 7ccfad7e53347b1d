//! Which kind of positions, with which settings: each kind is estimated, draws positions, and is compared with the load.
//! The smallest mean difference wins; a kind with few settings also if it is larger by little.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use iosonar_trace::{Nanos, Op, Request, Sector, Sectors};
use rand::SeedableRng;

use super::arrivals::number;
use super::compare::{Places, page_for};
use super::model::{Candidate, Choices};
use crate::distributions::Zipf;
use crate::positions::{self, MAX_BACK, Space, TouchedSlots, shift};
use crate::{Rng, Sizes};

/// What a kind must be better by than one with a parameter less, as a mean difference; at most that of ten parameters.
const SIMPLER: f64 = 0.005;

/// Requests that are compared, at most.
const MAX_DRAWN: usize = 500_000;

/// Quantiles of new positions.
const PLACES: usize = 64;

pub(super) struct Placed {
    pub candidates: Vec<Candidate>,
    /// In sectors.
    pub align: u64,
    /// First sector, and the sector behind the last.
    pub region: (u64, u64),
}

/// `requests` are sectors and lengths.
pub(super) fn fit(requests: &[(u64, u64)], size: u64, sizes: &Sizes, choices: &Choices) -> Result<Placed, String> {
    let requests = &requests[..requests.len().min(MAX_DRAWN)];
    if requests.is_empty() {
        let text = "uniform".to_owned();
        let only = Candidate { text, parameters: 0, aic: None, distance: 0.0, dispersion: None, is_chosen: true };
        return Ok(Placed { candidates: vec![only], align: 8, region: (0, size) });
    }
    let (align, remainder) = alignment(requests);
    let region = region(requests, size, align, remainder);
    let first = region.0;
    let space = Space::new(Sectors(region.1 - first), Sectors(align), sizes.largest())?;
    let slots: Vec<(u64, u64)> =
        requests.iter().map(|(at, length)| ((at - first) / align, length.div_ceil(align).max(1))).collect();
    let all = ((region.1 - first) / align).max(1);
    let request = |at: u64, length: u64| Request::new(Nanos::ZERO, Op::Write, Sector(at), Sectors(length));
    let page = page_for(requests.iter().map(|(_, length)| *length));
    let mut original = Places::new(page);
    requests.iter().for_each(|(at, length)| original.add(&request(*at, *length)));
    let mut candidates = Vec::new();
    for (text, parameters) in tried(&slots, all) {
        let settings = positions::parse(&text)?;
        let Ok(mut kind) = positions::build(&settings, space, choices.seed) else { continue };
        let (mut rng, mut size_rng) = (Rng::seed_from_u64(choices.seed), Rng::seed_from_u64(choices.seed + 1));
        let mut drawn = Places::new(page);
        for _ in requests {
            let length = sizes.pick(&mut size_rng);
            drawn.add(&request(first + kind.next(length, &mut rng).0, length.0));
        }
        let distance = original.distance(&drawn);
        candidates.push(Candidate { text, parameters, aic: None, distance, dispersion: None, is_chosen: false });
    }
    if let Some(kind) = &choices.positions {
        candidates.retain(|candidate| candidate.kind() == kind);
        if candidates.is_empty() {
            return Err(format!("cannot fit positions of kind {kind} to this load; choose another kind, or none"));
        }
    }
    let price = |candidate: &Candidate| candidate.distance + SIMPLER * candidate.parameters.min(10) as f64;
    let best = candidates.iter_mut().min_by(|one, two| price(one).total_cmp(&price(two)));
    best.ok_or("no kind of positions fits")?.is_chosen = true;
    Ok(Placed { candidates, align, region })
}

/// The largest alignment that at least 90 % of the positions have, 99.9 % if it is above 4 KiB; and their remainder.
fn alignment(requests: &[(u64, u64)]) -> (u64, u64) {
    let powers = (0..=11).rev().map(|power| 1_u64 << power);
    for align in powers {
        let mut counts = HashMap::<u64, usize, FixedState>::default();
        requests.iter().for_each(|(at, _)| *counts.entry(at % align).or_default() += 1);
        let most = counts.into_iter().max_by_key(|(remainder, count)| (*count, std::cmp::Reverse(*remainder)));
        let needed = if align > 8 { 0.999 } else { 0.9 };
        if let Some((remainder, count)) = most
            && count as f64 >= needed * requests.len() as f64
        {
            return (align, remainder);
        }
    }
    (1, 0)
}

/// The part of the device that is used; all of it, if that is nearly all.
fn region(requests: &[(u64, u64)], size: u64, align: u64, remainder: u64) -> (u64, u64) {
    let from = requests.iter().map(|(at, _)| *at).min().unwrap_or(0);
    let to = requests.iter().map(|(at, length)| at + length).max().unwrap_or(size);
    if from < size / 100 && to > size - size / 100 && remainder == 0 {
        return (0, size);
    }
    let from = if from < size / 100 { remainder } else { from };
    // Down to a position with this remainder.
    let first = from.checked_sub(remainder).map_or(0, |above| above / align * align + remainder);
    (first.min(from), to.max(first + align).min(size))
}

/// Kinds with their settings, and the number of these. Slots are positions, and how many of them a request covers.
fn tried(slots: &[(u64, u64)], all: u64) -> Vec<(String, usize)> {
    let mut kinds = vec![("uniform".to_owned(), 0), ("sequential".to_owned(), 0)];
    let n = slots.len() as f64;
    let locality = Locality::of(slots, all);
    kinds.extend(streams(&locality, n));
    kinds.extend(zipf(slots, all));
    kinds.extend(hotspots(slots, all));
    let places = || slots.iter().map(|(slot, _)| *slot as f64 / all as f64);
    let mean = places().sum::<f64>() / n;
    let deviation = (places().map(|place| (place - mean) * (place - mean)).sum::<f64>() / n).sqrt();
    if deviation > 0.0 {
        kinds.push((format!("normal centre={mean:.4} deviation={deviation:.4}"), 2));
    }
    let mut steps: Vec<u64> = slots.windows(2).map(|pair| pair[0].0.abs_diff(pair[1].0)).collect();
    steps.sort_unstable();
    if let Some(step) = steps.get(steps.len() * 99 / 100).filter(|step| **step > 0) {
        kinds.push((format!("random-walk step={step}s"), 1));
    }
    kinds.push(locality.text(all));
    kinds
}

/// How requests follow earlier ones.
#[derive(Default)]
struct Locality {
    requests: f64,
    /// How many requests ago the continued one was.
    continued: Vec<u64>,
    /// How many requests ago the position was the last time.
    back: Vec<u64>,
    /// The other positions.
    new: Vec<u64>,
    /// How many of these are where no request was before.
    untouched: f64,
}

impl Locality {
    fn of(slots: &[(u64, u64)], all: u64) -> Self {
        let mut touched = TouchedSlots { shift: shift(all), bits: Vec::new() };
        let mut found = Self { requests: slots.len() as f64, ..Self::default() };
        let mut ends = HashMap::<u64, usize, FixedState>::default();
        let mut starts = HashMap::<u64, usize, FixedState>::default();
        for (number, (slot, length)) in slots.iter().enumerate() {
            let ago = |before: &usize| ((number - before) as u64).min(MAX_BACK);
            let (end, start) = (ends.get(slot).map(ago), starts.get(slot).map(ago));
            match (end, start) {
                // A page that is written again after the one before it is not a run.
                (Some(end), None) => found.continued.push(end),
                (Some(end), Some(start)) if end <= start => found.continued.push(end),
                (_, Some(start)) => found.back.push(start),
                (None, None) => {
                    found.new.push(*slot);
                    found.untouched += f64::from(u8::from(!touched.has(*slot)));
                }
            }
            touched.add(*slot, *length);
            starts.insert(*slot, number);
            ends.insert(slot + length, number);
        }
        for numbers in [&mut found.continued, &mut found.back, &mut found.new] {
            numbers.sort_unstable();
        }
        found
    }

    fn text(&self, all: u64) -> (String, usize) {
        let share = |of: &[u64]| number(of.len() as f64 / self.requests);
        let mut text = format!("measured sequential={} returns={}", share(&self.continued), share(&self.back));
        let mut parameters = 3;
        for (name, numbers) in [("continued", &self.continued), ("back", &self.back)] {
            let points = quantiles(numbers, &SHARES, |ago| ago.to_string());
            if let Some(points) = points {
                parameters += points.split(',').count() - 2;
                text += &format!(" {name}={points}");
            }
        }
        let shares: Vec<f64> = (0..=PLACES).map(|n| n as f64 / PLACES as f64).collect();
        let place = |slot: u64| number(slot as f64 / all as f64);
        if let Some(points) = quantiles(&self.new, &shares, place) {
            parameters += points.split(',').count() - 2;
            let untouched = number(self.untouched / self.new.len() as f64);
            text += &format!(" places={points} untouched={untouched}");
        }
        (text, parameters)
    }
}

/// Of distances back.
const SHARES: [f64; 17] = [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0];

/// The quantiles of sorted numbers; none without numbers. Those on a step between equal ones are left out.
fn quantiles(sorted: &[u64], shares: &[f64], text: impl Fn(u64) -> String) -> Option<String> {
    let last = sorted.len().checked_sub(1)?;
    let points: Vec<(f64, u64)> =
        shares.iter().map(|share| (*share, sorted[(share * last as f64).round() as usize])).collect();
    let is_needed = |index: &usize| {
        let equal = |other: Option<&(f64, u64)>| other.is_some_and(|other| other.1 == points[*index].1);
        !(equal(index.checked_sub(1).and_then(|before| points.get(before))) && equal(points.get(index + 1)))
    };
    let kept = (0..points.len()).filter(is_needed);
    Some(
        kept.map(|index| format!("{}:{}", share_text(points[index].0), text(points[index].1)))
            .collect::<Vec<_>>()
            .join(","),
    )
}

fn share_text(share: f64) -> String {
    format!("{share:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// If most requests continue an earlier one. The mean distance back is the number of streams, as each has an equal share of
/// the requests; how often it is 1 gives the length of a run.
fn streams(locality: &Locality, requests: f64) -> Option<(String, usize)> {
    let continued = locality.continued.len() as f64;
    if continued < 0.5 * requests {
        return None;
    }
    let mean = locality.continued.iter().map(|ago| *ago as f64).sum::<f64>() / continued;
    let count = mean.round().max(1.0);
    let next = locality.continued.iter().filter(|ago| **ago == 1).count() as f64 / continued;
    let run = if next < 1.0 { ((1.0 - 1.0 / count) / (1.0 - next)).round().clamp(1.0, 1e6) } else { 1.0 };
    (count > 1.0).then(|| (format!("streams count={count} run={run}"), 2))
}

/// The exponent of maximum likelihood, with ranks in the order of the counts.
fn zipf(slots: &[(u64, u64)], all: u64) -> Option<(String, usize)> {
    let mut counts = HashMap::<u64, u64, FixedState>::default();
    slots.iter().for_each(|(slot, _)| *counts.entry(*slot).or_default() += 1);
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|one, two| two.cmp(one));
    if all < 2 || counts.len() < 2 {
        return None;
    }
    let n = slots.len() as f64;
    let logs: f64 =
        counts.iter().enumerate().map(|(rank, count)| *count as f64 * libm::log(rank as f64 + 1.0)).sum::<f64>() / n;
    // The derivative of the likelihood falls: the mean logarithm of the rank must be that of the law.
    let mean = |exponent: f64| {
        let h = 1e-4;
        let log = |s: f64| libm::log(Zipf::harmonic(all as f64, s));
        (log(exponent - h) - log(exponent + h)) / (2.0 * h)
    };
    let (mut low, mut high) = (0.01, 5.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if mean(middle) > logs { low = middle } else { high = middle }
    }
    Some((format!("zipf exponent={}", number(f64::midpoint(low, high))), 1))
}

/// The parts of the space with more requests than their share, if they are a few equal ones.
fn hotspots(slots: &[(u64, u64)], all: u64) -> Option<(String, usize)> {
    let parts = all.min(1000);
    let mut counts = BTreeMap::<u64, f64>::new();
    slots.iter().for_each(|(slot, _)| *counts.entry(slot * parts / all).or_default() += 1.0);
    // Parts with more than the mean, in rising order.
    let mean = slots.len() as f64 / parts as f64;
    let hot: Vec<u64> = counts.iter().filter(|(_, count)| **count > 1.5 * mean).map(|(part, _)| *part).collect();
    let share: f64 = hot.iter().map(|part| counts[part]).sum::<f64>() / slots.len() as f64;
    let spots = 1 + hot.windows(2).filter(|pair| pair[1] > pair[0] + 1).count();
    let space = hot.len() as f64 / parts as f64;
    let text = format!("hotspots spots={spots} space={} share={}", number(space), number(share.min(1.0)));
    (!hot.is_empty() && space < 0.9).then_some((text, 3))
}
