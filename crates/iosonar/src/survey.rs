//! What can be said of a load or a run after all its rows were seen.

use std::collections::{BTreeMap, HashMap};

use hdrhistogram::Histogram;
use iosonar_trace::{Nanos, Op, Outcome, Record, Request, Sectors};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Sizes beyond this number of different ones are counted together.
const MAX_SIZES: usize = 4096;

/// Sizes, volumes and peaks.
#[derive(Default)]
pub struct Survey {
    read_bytes: u64,
    written_bytes: u64,
    sizes: HashMap<u64, u64>,
    other_sizes: u64,
    min_bytes: Option<u64>,
    max_bytes: u64,
    first_ns: Option<i64>,
    second: i64,
    in_second: u64,
    peak: u64,
}

impl Survey {
    /// Takes a request of a load into account.
    pub fn request(&mut self, request: &Request) {
        self.take(request.op, request.sectors);
        // Seconds of the load: most recordings are idle before their first request.
        let since = request.at.0.saturating_sub(*self.first_ns.get_or_insert(request.at.0));
        let second = since / 1_000_000_000;
        if second != self.second {
            (self.second, self.in_second) = (second, 0);
        }
        self.in_second += 1;
        self.peak = self.peak.max(self.in_second);
    }

    fn take(&mut self, op: Op, sectors: Sectors) {
        let bytes = sectors.bytes();
        match op {
            Op::Read => self.read_bytes = self.read_bytes.saturating_add(bytes),
            Op::Write => self.written_bytes = self.written_bytes.saturating_add(bytes),
            Op::Flush | Op::Discard | Op::WriteZeroes => return,
        }
        if self.sizes.len() < MAX_SIZES || self.sizes.contains_key(&bytes) {
            *self.sizes.entry(bytes).or_default() += 1;
        } else {
            self.other_sizes += 1;
        }
        self.min_bytes = Some(self.min_bytes.map_or(bytes, |min| min.min(bytes)));
        self.max_bytes = self.max_bytes.max(bytes);
    }

    /// The part of the JSON object that every file has.
    pub fn json(&self) -> Map<String, Value> {
        let requests: u64 = self.sizes.values().sum::<u64>() + self.other_sizes;
        let bytes = self.read_bytes.saturating_add(self.written_bytes);
        let mut common: Vec<(u64, u64)> = self.sizes.iter().map(|(&bytes, &count)| (bytes, count)).collect();
        common.sort_by_key(|&(bytes, count)| (std::cmp::Reverse(count), bytes));
        let common: Vec<Value> =
            common.into_iter().take(5).map(|(bytes, requests)| json!({"bytes": bytes, "requests": requests})).collect();
        let mut map = Map::new();
        map.insert("bytes".into(), json!({"read": self.read_bytes, "written": self.written_bytes}));
        let mean = if requests > 0 { bytes as f64 / requests as f64 } else { 0.0 };
        map.insert(
            "request_bytes".into(),
            json!({"min": self.min_bytes.unwrap_or(0), "mean": mean, "max": self.max_bytes, "common": common}),
        );
        if self.peak > 0 {
            map.insert("busiest_second_requests".into(), self.peak.into());
        }
        map
    }
}

/// What happened, in a run.
pub struct RunSurvey {
    pub sizes: Survey,
    latency: Times,
    delay: Times,
    pushed_back: u64,
    outcomes: BTreeMap<Outcome, u64>,
}

#[derive(Serialize)]
struct Quantiles {
    mean: f64,
    p50: f64,
    p90: f64,
    p98: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

impl RunSurvey {
    pub fn new() -> Self {
        Self {
            sizes: Survey::default(),
            latency: Times::new(),
            delay: Times::new(),
            pushed_back: 0,
            outcomes: BTreeMap::new(),
        }
    }

    /// Takes a row into account.
    pub fn record(&mut self, record: &Record) {
        *self.outcomes.entry(record.outcome).or_default() += 1;
        self.pushed_back += u64::from(record.pushed_back);
        if record.outcome.is_skipped() {
            return;
        }
        self.sizes.take(record.op, record.sectors);
        self.latency.put(record.latency());
        self.delay.put(record.delay());
    }

    /// The part of the JSON object that a run has.
    pub fn json(&self) -> Map<String, Value> {
        let mut map = Map::new();
        map.insert("latency_us".into(), json!(self.latency.quantiles()));
        map.insert("delay_us".into(), json!(self.delay.quantiles()));
        map.insert("pushed_back".into(), self.pushed_back.into());
        let outcomes =
            self.outcomes.iter().map(|(outcome, &count)| (outcome.name().to_owned(), count.into())).collect();
        map.insert("outcomes".into(), Value::Object(outcomes));
        map
    }
}

/// Times to three digits, in memory that does not grow, and their exact maximum.
struct Times {
    histogram: Histogram<u64>,
    max: u64,
}

impl Times {
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, 1 << 42, 3).expect("the bounds are valid");
        Self { histogram, max: 0 }
    }

    fn put(&mut self, time: Option<Nanos>) {
        if let Some(time) = time {
            let ns = time.0.max(0) as u64;
            self.histogram.saturating_record(ns);
            self.max = self.max.max(ns);
        }
    }

    fn quantiles(&self) -> Option<Quantiles> {
        let us = |q: f64| self.histogram.value_at_quantile(q).min(self.max) as f64 / 1e3;
        (!self.histogram.is_empty()).then(|| Quantiles {
            mean: self.histogram.mean() / 1e3,
            p50: us(0.5),
            p90: us(0.9),
            p98: us(0.98),
            p99: us(0.99),
            p999: us(0.999),
            max: self.max as f64 / 1e3,
        })
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Sector;

    use super::*;

    #[test]
    fn sizes_and_peaks() {
        let mut survey = Survey::default();
        for (at, op, sectors) in
            [(0.0, Op::Read, 8), (0.9, Op::Write, 8), (1.0, Op::Write, 16), (1.5, Op::Flush, 0), (1.9, Op::Read, 8)]
        {
            survey.request(&Request::new(Nanos::from_secs(at), op, Sector(0), Sectors(sectors)));
        }
        let json = Value::Object(survey.json());
        assert_eq!(json["bytes"], json!({"read": 8192, "written": 12_288}));
        assert_eq!(json["request_bytes"]["common"][0], json!({"bytes": 4096, "requests": 3}));
        assert_eq!(json["request_bytes"]["mean"], 5120.0);
        assert_eq!(json["busiest_second_requests"], 3);
    }

    #[test]
    fn seconds_count_from_the_first_request() {
        let mut survey = Survey::default();
        for at in [1.6, 1.9, 2.2, 2.5, 2.7] {
            survey.request(&Request::new(Nanos::from_secs(at), Op::Read, Sector(0), Sectors(8)));
        }
        assert_eq!(survey.json()["busiest_second_requests"], 4);
    }
}
