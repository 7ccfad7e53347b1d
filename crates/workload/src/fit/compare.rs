//! How a load differs from another, by statistics.

use std::collections::{BTreeMap, HashMap, VecDeque};

use foldhash::fast::FixedState;
use iosonar_trace::{Flags, Nanos, Op, Request};

use crate::cache::{PAGE, Reuse, ReuseDistances, pages};
use crate::histogram::LogHistogram;

/// The windows of the index of dispersion.
pub const WINDOWS: [(Nanos, &str); 4] = [
    (Nanos(10_000_000), "10 ms"),
    (Nanos(100_000_000), "100 ms"),
    (Nanos(1_000_000_000), "1 s"),
    (Nanos(10_000_000_000), "10 s"),
];

/// The fewest windows for an index of dispersion.
const FEWEST_WINDOWS: i64 = 10;

/// A request is sequential if it continues one of so many before it.
const SEQUENTIAL_WITHIN: usize = 64;

/// Pages that are measured at a time.
const MAX_PAGES: usize = 1 << 20;

/// Arrivals per window, for several lengths of windows.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// Length, number of the current window, its count, and the sums of counts and their squares.
    windows: Vec<(i64, i64, f64, f64, f64)>,
    until: Nanos,
}

impl Counts {
    /// Up to this time.
    pub fn new(until: Nanos) -> Self {
        // From 10 ms on in powers of two for the Hurst parameter, after those of the index.
        let lengths = WINDOWS.iter().map(|(window, _)| window.0).chain((0..).map(|n| 10_000_000 << n).take(40));
        let fitting = lengths.filter(|length| until.0 / length >= FEWEST_WINDOWS || *length <= WINDOWS[3].0.0);
        Self { windows: fitting.map(|length| (length, 0, 0.0, 0.0, 0.0)).collect(), until }
    }

    /// Counts an arrival; arrivals come in order.
    pub fn add(&mut self, at: Nanos) {
        for (length, number, count, sum, squares) in &mut self.windows {
            let now = at.0 / *length;
            if now != *number {
                (*sum, *squares) = (*sum + *count, *squares + *count * *count);
                (*number, *count) = (now, 0.0);
            }
            // The last window may be cut short.
            if now < self.until.0 / *length {
                *count += 1.0;
            }
        }
    }

    /// Variance over mean of the counts of each window; none with too few windows or no arrivals.
    fn indices(&self) -> impl Iterator<Item = (i64, Option<f64>)> {
        self.windows.iter().map(|(length, _, count, sum, squares)| {
            let windows = self.until.0 / length;
            let (sum, squares, n) = (sum + count, squares + count * count, windows as f64);
            let mean = sum / n;
            let index = (squares / n - mean * mean) / mean;
            (*length, (windows >= FEWEST_WINDOWS && sum > 0.0).then_some(index))
        })
    }

    /// The index of dispersion for counts for each of [`WINDOWS`].
    pub fn dispersion(&self) -> Vec<Option<f64>> {
        self.indices().take(WINDOWS.len()).map(|(_, index)| index).collect()
    }

    /// The Hurst parameter by the aggregated variance: counts of windows of length w have a variance in proportion to
    /// w^(2H), and so an index of dispersion in proportion to w^(2H − 1). The slope is that of a line of least squares through
    /// the windows that have at least ten arrivals on average and of which there are at least thirty.
    pub fn hurst(&self) -> Option<f64> {
        let arrivals: f64 = self.windows.first().map_or(0.0, |(_, _, count, sum, _)| sum + count);
        let interval = self.until.0 as f64 / arrivals;
        let usable = self
            .indices()
            .skip(WINDOWS.len())
            .filter(|(length, _)| *length as f64 >= 10.0 * interval && self.until.0 / length >= 30);
        let points: Vec<(f64, f64)> = usable
            .filter_map(|(length, index)| {
                Some((libm::log(length as f64), libm::log(index.filter(|index| *index > 0.0)?)))
            })
            .collect();
        if points.len() < 4 {
            return None;
        }
        let n = points.len() as f64;
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
        let slope = mean(&|p| (p.0 - x) * (p.1 - y)) / mean(&|p| (p.0 - x) * (p.0 - x));
        Some(f64::midpoint(1.0, slope))
    }
}

/// The mean absolute logarithm (base 10) of the ratios of indices that both have.
pub(super) fn dispersion_difference(one: &[Option<f64>], two: &[Option<f64>]) -> f64 {
    let both: Vec<f64> = one.iter().zip(two).filter_map(|(one, two)| Some(decades((*one)?, (*two)?))).collect();
    if both.is_empty() { 0.0 } else { both.iter().sum::<f64>() / both.len() as f64 }
}

/// The absolute logarithm of a ratio; indices below 0.001 count as that.
fn decades(one: f64, two: f64) -> f64 {
    libm::log10(one.max(1e-3) / two.max(1e-3)).abs()
}

/// Pages that a request may touch on average, and that all of them may.
const PAGES_OF_REQUEST: u64 = 64;
const PAGES_OF_ALL: u64 = 1 << 20;

/// The sectors of a page in which loads are compared: 4 KiB, or more if requests (of these sectors) are very large.
pub(super) fn page_for(requests: impl Iterator<Item = u64>) -> u64 {
    let (count, pages) = requests
        .fold((0_u64, 0_u64), |(count, pages), sectors| (count + 1, pages.saturating_add(sectors.div_ceil(PAGE))));
    let most = count.saturating_mul(PAGES_OF_REQUEST).max(PAGES_OF_ALL);
    PAGE * pages.div_ceil(most).max(1).next_power_of_two()
}

/// Where requests go.
pub(super) struct Places {
    /// Sectors of a page.
    page: u64,
    requests: f64,
    /// Requests that start in each MiB of each device.
    starts: BTreeMap<(u16, u64), f64>,
    /// Accesses to each page.
    counts: HashMap<u64, f64, FixedState>,
    reuse: LogHistogram,
    /// Accesses to pages for the first time.
    first: f64,
    sequential: f64,
    ends: VecDeque<(u16, u64)>,
    stack: ReuseDistances,
}

impl Places {
    /// In pages of so many sectors.
    pub fn new(page: u64) -> Self {
        Self {
            page,
            requests: 0.0,
            starts: BTreeMap::new(),
            counts: HashMap::default(),
            reuse: LogHistogram::default(),
            first: 0.0,
            sequential: 0.0,
            ends: VecDeque::new(),
            stack: ReuseDistances::new(MAX_PAGES),
        }
    }

    pub fn add(&mut self, request: &Request) {
        if request.is_empty() {
            return;
        }
        let (device, start) = (request.device.0, request.sector.0);
        self.requests += 1.0;
        *self.starts.entry((device, start >> 11)).or_default() += 1.0;
        if self.ends.contains(&(device, start)) {
            self.sequential += 1.0;
        }
        if self.ends.len() == SEQUENTIAL_WITHIN {
            self.ends.pop_back();
        }
        self.ends.push_front((device, request.end().0));
        for page in pages(request, self.page) {
            let Some(Reuse { distance, weight }) = self.stack.access(page) else { continue };
            *self.counts.entry(page).or_default() += 1.0;
            match distance {
                Some(distance) => self.reuse.add(distance as u64, weight),
                None => self.first += weight,
            }
        }
    }

    /// The share of accesses to this share of the touched pages, the most frequent ones.
    fn hottest(&self, share: f64) -> f64 {
        let mut counts: Vec<f64> = self.counts.values().copied().collect();
        counts.sort_by(|one, two| two.total_cmp(one));
        let hottest = ((counts.len() as f64 * share).round() as usize).max(1);
        counts.iter().take(hottest).sum::<f64>() / counts.iter().sum::<f64>().max(1.0)
    }

    fn sequential(&self) -> f64 {
        self.sequential / self.requests.max(1.0)
    }

    /// The share of accesses that are not the first to their page.
    fn again(&self) -> f64 {
        self.reuse.total() / (self.reuse.total() + self.first).max(1.0)
    }

    /// The statistic of Kolmogorov and Smirnov of positions, in MiB.
    fn ks(&self, other: &Self) -> f64 {
        let places: std::collections::BTreeSet<_> = self.starts.keys().chain(other.starts.keys()).collect();
        let (mut one, mut two, mut most) = (0.0, 0.0, 0.0_f64);
        for place in places {
            one += self.starts.get(place).unwrap_or(&0.0) / self.requests.max(1.0);
            two += other.starts.get(place).unwrap_or(&0.0) / other.requests.max(1.0);
            most = most.max((one - two).abs());
        }
        most
    }

    /// The rows of a comparison, with the third for what is due to chance.
    fn rows(&self, fitted: &Self, again: &Self) -> Vec<Row> {
        let shares = |what, is: &dyn Fn(&Self) -> f64| {
            let (one, two, three) = (is(self), is(fitted), is(again));
            Row::new(what, "difference", (Some(one), Some(two)), (one - two).abs(), (two - three).abs())
        };
        let reuse = |one: &Self, two: &Self| one.reuse.ks(&two.reuse, (one.first, two.first));
        vec![
            Row::new("positions", "KS", (None, None), self.ks(fitted), fitted.ks(again)),
            shares("sequential", &Self::sequential),
            shares("hottest 1 % of blocks", &|places| places.hottest(0.01)),
            shares("hottest 10 % of blocks", &|places| places.hottest(0.1)),
            shares("accesses to blocks again", &Self::again),
            Row::new("reuse distance", "KS", (None, None), reuse(self, fitted), reuse(fitted, again)),
        ]
    }

    /// The mean of the differences.
    pub fn distance(&self, other: &Self) -> f64 {
        let rows = self.rows(other, other);
        rows.iter().map(|row| row.difference).sum::<f64>() / rows.len() as f64
    }
}

/// What is compared of a load. Needs memory for the pages that are touched, 100 bytes each, up to a million; and for each
/// MiB that is.
pub struct Profile {
    requests: f64,
    operations: BTreeMap<(u8, bool), f64>,
    sizes: BTreeMap<u64, f64>,
    gaps: LogHistogram,
    pub(super) counts: Counts,
    places: Places,
}

impl Profile {
    /// Of requests in order of their times, from 0 up to a time, with positions in pages of so many sectors.
    pub fn of(requests: impl Iterator<Item = Request>, until: Nanos, page: u64) -> Self {
        let mut profile = Self {
            requests: 0.0,
            operations: BTreeMap::new(),
            sizes: BTreeMap::new(),
            gaps: LogHistogram::default(),
            counts: Counts::new(until),
            places: Places::new(page),
        };
        let mut last: Option<Nanos> = None;
        for request in requests {
            profile.requests += 1.0;
            let is_fua = request.op == Op::Write && request.flags.has(Flags::FUA);
            *profile.operations.entry((request.op as u8, is_fua)).or_default() += 1.0;
            if !request.is_empty() {
                *profile.sizes.entry(request.sectors.0).or_default() += 1.0;
            }
            if let Some(last) = last.replace(request.at) {
                profile.gaps.add((request.at - last).0.max(0) as u64, 1.0);
            }
            profile.counts.add(request.at);
            profile.places.add(&request);
        }
        profile
    }
}

/// Half the sum of the absolute differences of the shares: the total variation distance.
fn total_variation<Key: Ord>(one: &BTreeMap<Key, f64>, two: &BTreeMap<Key, f64>) -> f64 {
    let sum = |of: &BTreeMap<Key, f64>| of.values().sum::<f64>().max(1.0);
    let (all_one, all_two) = (sum(one), sum(two));
    let mut difference = 0.0;
    for (key, count) in one {
        difference += (count / all_one - two.get(key).unwrap_or(&0.0) / all_two).abs();
    }
    for (key, count) in two.iter().filter(|(key, _)| !one.contains_key(key)) {
        debug_assert!(!one.contains_key(key));
        difference += count / all_two;
    }
    difference / 2.0
}

/// A statistic of two loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What is compared.
    pub what: String,
    /// How the difference is computed.
    pub statistic: &'static str,
    /// The value of the original, if the statistic has one.
    pub original: Option<f64>,
    /// The value of the program's load.
    pub fitted: Option<f64>,
    /// The difference; 0 if they are the same.
    pub difference: f64,
    /// The difference of two loads of the program with different seeds.
    pub by_chance: f64,
}

impl Row {
    fn new(
        what: &str,
        statistic: &'static str,
        (original, fitted): (Option<f64>, Option<f64>),
        difference: f64,
        by_chance: f64,
    ) -> Self {
        Self { what: what.to_owned(), statistic, original, fitted, difference, by_chance }
    }
}

/// The differences of two loads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// One row for each statistic.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// The mean of all differences, each of at most 1.
    pub fn mean(&self) -> f64 {
        self.rows.iter().map(|row| row.difference.min(1.0)).sum::<f64>() / (self.rows.len() as f64).max(1.0)
    }
}

/// Compares a load with that of a program; `again` is that of the program with another seed.
pub fn compare(original: &Profile, fitted: &Profile, again: &Profile) -> Comparison {
    let ratio = |one: f64, two: f64| (one - two).abs() / one.max(two).max(1.0);
    let mut rows = vec![Row::new(
        "requests",
        "relative",
        (Some(original.requests), Some(fitted.requests)),
        ratio(original.requests, fitted.requests),
        ratio(fitted.requests, again.requests),
    )];
    let variation = |of: &dyn Fn(&Profile, &Profile) -> f64| (of(original, fitted), of(fitted, again));
    let (difference, chance) = variation(&|one, two| total_variation(&one.operations, &two.operations));
    rows.push(Row::new("operations", "TV", (None, None), difference, chance));
    let (difference, chance) = variation(&|one, two| total_variation(&one.sizes, &two.sizes));
    rows.push(Row::new("sizes", "TV", (None, None), difference, chance));
    let (difference, chance) = variation(&|one, two| one.gaps.ks(&two.gaps, (0.0, 0.0)));
    rows.push(Row::new("times between arrivals", "KS", (None, None), difference, chance));
    let indices = [original, fitted, again].map(|profile| profile.counts.dispersion());
    for (number, (_, window)) in WINDOWS.iter().enumerate() {
        if let [Some(one), Some(two), Some(three)] = [0, 1, 2].map(|of| indices[of][number]) {
            let what = format!("dispersion in {window}");
            rows.push(Row::new(&what, "decades", (Some(one), Some(two)), decades(one, two), decades(two, three)));
        }
    }
    if let [Some(one), Some(two), Some(three)] = [original, fitted, again].map(|profile| profile.counts.hurst()) {
        rows.push(Row::new(
            "Hurst parameter",
            "difference",
            (Some(one), Some(two)),
            (one - two).abs(),
            (two - three).abs(),
        ));
    }
    rows.extend(original.places.rows(&fitted.places, &again.places));
    Comparison { rows }
}
