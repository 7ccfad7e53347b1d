//! Totals over all rows of a load or a run, for `iosonar info`.

use std::collections::{BTreeMap, HashMap};

use iosonar_pacing::histogram::Times;
use iosonar_trace::{IoResult, Nanos, Op, Outcome, Request, Sectors};
use serde_json::{Map, Value, json};

/// Distinct sizes above [`MAX_SMALL_SECTORS`] that are counted separately.
const MAX_LARGE_SIZES: usize = 4096;

/// Nearly all requests have at most 1 MiB. Their sizes are counted without a hash table, which would cost more than the rest.
const MAX_SMALL_SECTORS: usize = 2048;

/// Sizes, bytes, peak rate, latencies.
#[derive(Default)]
pub struct LoadSummary {
    read_bytes: u64,
    written_bytes: u64,
    /// The lengths of all reads and writes, whatever they moved.
    asked_bytes: u64,
    sizes: Sizes,
    min_bytes: Option<u64>,
    max_bytes: u64,
    first_ns: Option<i64>,
    second: i64,
    in_second: u64,
    peak: u64,
    latency: Latency,
    queued: Option<Times>,
}

impl LoadSummary {
    /// Adds a request of a load.
    pub fn request(&mut self, request: &Request) {
        self.take(request.op, request.sectors, request.sectors.bytes());
        // Seconds count from the first request: most recordings begin idle.
        let since = request.at.0.saturating_sub(*self.first_ns.get_or_insert(request.at.0));
        let second = since / 1_000_000_000;
        if second != self.second {
            (self.second, self.in_second) = (second, 0);
        }
        self.in_second += 1;
        self.peak = self.peak.max(self.in_second);
        self.latency.add(request.op, request.latency);
        if let Some(queued) = request.queued {
            self.queued.get_or_insert_with(Times::growing).add(queued);
        }
    }

    /// Counts a request that moved so many bytes.
    fn take(&mut self, op: Op, sectors: Sectors, moved: u64) {
        let bytes = sectors.bytes();
        match op {
            Op::Read => self.read_bytes = self.read_bytes.saturating_add(moved),
            Op::Write => self.written_bytes = self.written_bytes.saturating_add(moved),
            Op::Flush | Op::Discard | Op::WriteZeroes => return,
        }
        self.sizes.add(sectors);
        self.asked_bytes = self.asked_bytes.saturating_add(bytes);
        self.min_bytes = Some(self.min_bytes.map_or(bytes, |min| min.min(bytes)));
        self.max_bytes = self.max_bytes.max(bytes);
    }

    /// The keys of the JSON object for loads and runs.
    pub fn json(&self) -> Map<String, Value> {
        let mut common = self.sizes.counts();
        let requests = common.iter().map(|(_, count)| count).sum::<u64>() + self.sizes.others;
        common.sort_by_key(|&(bytes, count)| (std::cmp::Reverse(count), bytes));
        let common: Vec<Value> =
            common.into_iter().take(5).map(|(bytes, requests)| json!({"bytes": bytes, "requests": requests})).collect();
        let mut map = Map::new();
        map.insert("bytes".into(), json!({"read": self.read_bytes, "written": self.written_bytes}));
        let mean = if requests > 0 { self.asked_bytes as f64 / requests as f64 } else { 0.0 };
        map.insert(
            "request_bytes".into(),
            json!({"min": self.min_bytes.unwrap_or(0), "mean": mean, "max": self.max_bytes, "common": common}),
        );
        if self.peak > 0 {
            map.insert("busiest_second_requests".into(), self.peak.into());
        }
        self.latency.enter(&mut map);
        if let Some(queued) = &self.queued {
            map.insert("queued_us".into(), json!(queued.quantiles()));
        }
        map
    }
}

/// The number of requests of each size.
#[derive(Default)]
struct Sizes {
    /// By the number of sectors; empty before the first request.
    small: Vec<u64>,
    large: HashMap<Sectors, u64>,
    others: u64,
}

impl Sizes {
    fn add(&mut self, sectors: Sectors) {
        if sectors.0 <= MAX_SMALL_SECTORS as u64 {
            if self.small.is_empty() {
                self.small = vec![0; MAX_SMALL_SECTORS + 1];
            }
            self.small[sectors.0 as usize] += 1;
        } else if self.large.len() < MAX_LARGE_SIZES || self.large.contains_key(&sectors) {
            *self.large.entry(sectors).or_default() += 1;
        } else {
            self.others += 1;
        }
    }

    /// Sizes in bytes, with the number of requests.
    fn counts(&self) -> Vec<(u64, u64)> {
        let small = self.small.iter().enumerate().map(|(sectors, &count)| (Sectors(sectors as u64), count));
        let large = self.large.iter().map(|(&sectors, &count)| (sectors, count));
        small.chain(large).filter(|(_, count)| *count > 0).map(|(sectors, count)| (sectors.bytes(), count)).collect()
    }
}

/// Latencies by operation.
#[derive(Default)]
struct Latency([Option<Box<Times>>; Op::ALL.len()]);

impl Latency {
    fn add(&mut self, op: Op, latency: Option<Nanos>) {
        let Some(latency) = latency else { return };
        self.0[op as usize].get_or_insert_with(|| Box::new(Times::growing())).add(latency);
    }

    /// Latencies of all operations; `None` if none is known.
    fn all(&self) -> Option<Times> {
        let mut known = self.0.iter().flatten();
        let mut all = known.next()?.as_ref().clone();
        known.for_each(|times| all.merge(times));
        Some(all)
    }

    /// Adds the keys, if any latency is known.
    fn enter(&self, map: &mut Map<String, Value>) {
        let Some(all) = self.all() else { return };
        map.insert("latency_us".into(), json!(all.quantiles()));
        let by_op = Op::ALL.iter().filter_map(|&op| {
            let times = self.0[op as usize].as_ref()?;
            let mut quantiles = json!(times.quantiles());
            quantiles["requests"] = times.count().into();
            Some((op.name().to_owned(), quantiles))
        });
        map.insert("latency_us_by_op".into(), Value::Object(by_op.collect()));
    }
}

/// Delays and outcomes of a run.
pub struct RunSummary {
    zero: Nanos,
    pub sizes: LoadSummary,
    delay: Times,
    pushed_back: u64,
    outcomes: BTreeMap<Outcome, u64>,
    completed: u64,
    /// The earliest scheduled time.
    first: Option<Nanos>,
    /// The last completion.
    last: Option<Nanos>,
}

impl RunSummary {
    /// Of a run, or a window of it, that begins at `zero`.
    pub fn new(zero: Nanos) -> Self {
        Self {
            zero,
            sizes: LoadSummary::default(),
            delay: Times::growing(),
            pushed_back: 0,
            outcomes: BTreeMap::new(),
            completed: 0,
            first: None,
            last: None,
        }
    }

    /// Adds a row.
    pub fn record(&mut self, record: &IoResult) {
        *self.outcomes.entry(record.outcome).or_default() += 1;
        self.first = Some(self.first.unwrap_or(record.scheduled).min(record.scheduled));
        if record.completed.is_some() && record.latency().is_some() {
            self.completed += 1;
            self.last = self.last.max(record.completed);
        }
        self.pushed_back += u64::from(record.pushed_back);
        if record.outcome.is_skipped() {
            return;
        }
        self.sizes.take(record.op, record.sectors, record.bytes_moved());
        self.sizes.latency.add(record.op, record.latency());
        record.delay().into_iter().for_each(|delay| self.delay.add(delay));
    }

    /// Completed requests, and seconds from the first scheduled time to the last completion, as the run counted them.
    pub fn work(&self) -> (u64, f64) {
        let took = self.first.zip(self.last).map_or(0.0, |(first, last)| (last - first.max(self.zero)).as_secs());
        (self.completed, took.max(0.0))
    }

    /// The additional keys of the JSON object for a run.
    pub fn json(&self) -> Map<String, Value> {
        let mut map = Map::new();
        if self.sizes.latency.all().is_none() {
            map.insert("latency_us".into(), Value::Null);
        }
        map.insert("delay_us".into(), json!(self.delay.quantiles()));
        map.insert("pushed_back".into(), self.pushed_back.into());
        let outcomes =
            self.outcomes.iter().map(|(outcome, &count)| (outcome.name().to_owned(), count.into())).collect();
        map.insert("outcomes".into(), Value::Object(outcomes));
        map
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Sector;

    use super::*;

    #[test]
    fn sizes_and_the_busiest_second_are_counted() {
        let mut summary = LoadSummary::default();
        for (at, op, sectors) in
            [(0.0, Op::Read, 8), (0.9, Op::Write, 8), (1.0, Op::Write, 16), (1.5, Op::Flush, 0), (1.9, Op::Read, 8)]
        {
            summary.request(&Request::new(Nanos::from_secs(at), op, Sector(0), Sectors(sectors)));
        }
        let json = Value::Object(summary.json());
        assert_eq!(json["bytes"], json!({"read": 8192, "written": 12_288}));
        assert_eq!(json["request_bytes"]["common"][0], json!({"bytes": 4096, "requests": 3}));
        assert_eq!(json["request_bytes"]["mean"], 5120.0);
        assert_eq!(json["busiest_second_requests"], 3);
    }

    #[test]
    fn latencies_are_listed_by_operation_if_known() {
        let mut summary = LoadSummary::default();
        for (op, us) in [(Op::Read, Some(100)), (Op::Read, Some(300)), (Op::Write, Some(448_570)), (Op::Flush, None)] {
            let latency = us.map(|us: i64| Nanos(us * 1000));
            summary.request(&Request { latency, ..Request::new(Nanos::ZERO, op, Sector(0), Sectors(8)) });
        }
        let json = Value::Object(summary.json());
        assert_eq!((&json["latency_us"]["max"], &json["latency_us"]["p999"]), (&json!(448_570.0), &Value::Null));
        assert_eq!(
            (&json["latency_us_by_op"]["read"]["max"], &json["latency_us_by_op"]["read"]["requests"]),
            (&json!(300.0), &json!(2))
        );
        assert_eq!(json["latency_us_by_op"]["flush"], Value::Null);
        let mut unknown = LoadSummary::default();
        unknown.request(&Request::new(Nanos::ZERO, Op::Read, Sector(0), Sectors(8)));
        assert!(!unknown.json().contains_key("latency_us"), "{:?}", unknown.json());
    }

    #[test]
    fn the_rate_of_a_run_is_that_of_its_completed_requests() {
        let mut summary = RunSummary::new(Nanos::ZERO);
        assert_eq!(summary.work(), (0, 0.0));
        for (number, completed) in [(0, Some(0.6)), (1, Some(2.5)), (2, None)] {
            let at = Nanos::from_secs(0.5 + number as f64);
            let request = Request::new(at, Op::Read, Sector(0), Sectors(8));
            let (issued, completed) = (completed.map(|_| at), completed.map(Nanos::from_secs));
            summary.record(&IoResult { issued, completed, ..IoResult::of(&request, number) });
        }
        assert_eq!(summary.work(), (2, 2.0));
    }

    /// `--output-offset` moves all times of a result.
    #[test]
    fn the_time_of_a_run_counts_from_its_own_zero() {
        let at = Nanos::from_secs(-9.5);
        let request = Request::new(at, Op::Read, Sector(0), Sectors(8));
        let completed = Some(Nanos::from_secs(-8.0));
        let record = IoResult { issued: Some(at), completed, ..IoResult::of(&request, 0) };
        for (zero, took) in [(-10.0, 1.5), (-9.0, 1.0)] {
            let mut summary = RunSummary::new(Nanos::from_secs(zero));
            summary.record(&record);
            assert_eq!(summary.work(), (1, took));
        }
    }

    #[test]
    fn seconds_count_from_the_first_request() {
        let mut summary = LoadSummary::default();
        for at in [1.6, 1.9, 2.2, 2.5, 2.7] {
            summary.request(&Request::new(Nanos::from_secs(at), Op::Read, Sector(0), Sectors(8)));
        }
        assert_eq!(summary.json()["busiest_second_requests"], 4);
    }
}
