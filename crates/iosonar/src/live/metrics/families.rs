//! What `--metrics` tells of a run: families of samples, for each format.

use iosonar_pacing::live::{Distribution, Snapshot};
use iosonar_pacing::progress::Progress;
use prometheus_client::registry::Unit;

use super::run::{Labels, Run};
use crate::live::state::{State, run_time};

/// What a family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// The value of a sample.
#[derive(Clone, Debug)]
pub enum Value {
    Number(f64),
    Times(Distribution),
}

/// Samples with a common name.
#[derive(Clone, Debug)]
pub struct Family {
    /// Without the ends that formats add: the unit, and `_total` of a counter.
    pub name: &'static str,
    /// A sentence without its full stop.
    pub help: &'static str,
    pub unit: Option<Unit>,
    pub kind: Kind,
    pub samples: Vec<(Labels, Value)>,
}

/// All that there is to tell.
pub fn families(run: &Run) -> Vec<Family> {
    let mut all = about(run);
    if let Some(snapshot) = run.progress.snapshot() {
        all.extend(counts(&snapshot));
        all.extend(distributions(&snapshot, run.progress.live.as_ref().is_some_and(|live| live.is_timed())));
        all.extend(devices(&snapshot));
    }
    all.retain(|family| !family.samples.is_empty());
    all
}

fn family(name: &'static str, help: &'static str, kind: Kind) -> Family {
    Family { name, help, unit: None, kind, samples: Vec::new() }
}

fn one(name: &'static str, help: &'static str, kind: Kind, value: impl Into<Option<f64>>) -> Family {
    let samples = value.into().map(|value| (Labels::new(), Value::Number(value))).into_iter().collect();
    Family { samples, ..family(name, help, kind) }
}

fn seconds(family: Family) -> Family {
    Family { unit: Some(Unit::Seconds), ..family }
}

fn about(run: &Run) -> Vec<Family> {
    let progress: &Progress = &run.progress;
    let time = run_time(progress);
    let state = State::at(time, progress);
    let states = State::ALL.map(|each| (vec![("state", each.name().to_owned())], number(u64::from(each == state))));
    vec![
        Family {
            samples: vec![(run.about.clone(), number(1))],
            ..family("iosonar_run_info", "What is replayed, and where the result will be", Kind::Gauge)
        },
        Family {
            samples: states.into(),
            ..family("iosonar_state", "1 for what the replay does at the moment", Kind::Gauge)
        },
        seconds(one(
            "iosonar_run",
            "Time of the run, negative before its start",
            Kind::Gauge,
            time.map(|time| time.as_secs()),
        )),
        seconds(one(
            "iosonar_expected",
            "Expected duration of the run",
            Kind::Gauge,
            run.expected.get().map(|duration| duration.as_secs()),
        )),
    ]
}

fn number(count: u64) -> Value {
    Value::Number(count as f64)
}

fn counts(now: &Snapshot) -> Vec<Family> {
    use Kind::{Counter, Gauge};
    let outcomes = now.operations.iter().flat_map(|operation| {
        operation.outcomes.iter().map(|(outcome, count)| {
            (vec![("operation", operation.name.to_owned()), ("outcome", (*outcome).to_owned())], number(*count))
        })
    });
    let bytes = now.operations.iter().map(|each| (vec![("operation", each.name.to_owned())], number(each.bytes)));
    vec![
        one("iosonar_demanded", "Requests or calls that were due", Counter, now.demanded as f64),
        one("iosonar_submitted", "Those that were issued", Counter, now.submitted as f64),
        one("iosonar_completed", "Those that completed", Counter, now.completed as f64),
        one(
            "iosonar_errors",
            "Those that failed, read corrupt data or returned another result",
            Counter,
            now.errors as f64,
        ),
        one("iosonar_dropped", "Those that were left out because they were too late", Counter, now.dropped as f64),
        one("iosonar_in_flight", "Those in flight", Gauge, f64::from(now.in_flight)),
        one(
            "iosonar_waiting",
            "Those due and not issued, at the last issue that is known",
            Gauge,
            now.waiting.map(f64::from),
        ),
        seconds(one("iosonar_scheduled", "The latest scheduled time of the result", Gauge, now.scheduled.as_secs())),
        Family { samples: outcomes.collect(), ..family("iosonar_rows", "Rows of the result by outcome", Counter) },
        Family { samples: bytes.collect(), ..family("iosonar_moved_bytes", "Bytes that were moved", Counter) },
    ]
}

fn distributions(now: &Snapshot, is_timed: bool) -> Vec<Family> {
    let of = |times: fn(&iosonar_pacing::live::OperationSnapshot) -> &Distribution| {
        now.operations.iter().map(move |operation| {
            (vec![("operation", operation.name.to_owned())], Value::Times(times(operation).clone()))
        })
    };
    let latency = of(|operation| &operation.latency).collect();
    let delay = of(|operation| &operation.delay).filter(|_| is_timed).collect();
    vec![
        seconds(Family { samples: latency, ..family("iosonar_latency", "From issue to completion", Kind::Histogram) }),
        seconds(Family {
            samples: delay,
            ..family("iosonar_delay", "From the scheduled time to the issue", Kind::Histogram)
        }),
    ]
}

fn devices(now: &Snapshot) -> Vec<Family> {
    use iosonar_pacing::live::DeviceSnapshot;
    let of = |name, help, count: fn(&DeviceSnapshot) -> u64| {
        let labels = |device: &DeviceSnapshot| {
            vec![("device", device.name.source.clone()), ("target", device.name.target.clone())]
        };
        let samples = now.devices.iter().map(|device| (labels(device), number(count(device))));
        Family { samples: samples.collect(), ..family(name, help, Kind::Counter) }
    };
    let disk = |name, help, value: fn(&iosonar_trace::run_info::DeviceCounters) -> f64| {
        let samples = now.counters.iter().map(|each| (vec![("disk", each.disk.clone())], Value::Number(value(each))));
        Family { samples: samples.collect(), ..family(name, help, Kind::Counter) }
    };
    vec![
        of("iosonar_device_rows", "Rows by device of the load", |device| device.rows),
        of("iosonar_device_completed", "Those that the target completed", |device| device.completed),
        of("iosonar_device_moved_bytes", "Bytes by device of the load", |device| device.bytes),
        of("iosonar_device_errors", "Those that failed", |device| device.errors),
        disk(
            "iosonar_disk_requests",
            "Requests that the disk completed since the start of the run, by the kernel",
            |disk| disk.requests as f64,
        ),
        disk("iosonar_disk_merged", "Requests that the kernel merged into others", |disk| disk.merged as f64),
        seconds(disk("iosonar_disk_busy", "Sum of the times of all requests, by the kernel", |disk| disk.busy_s)),
    ]
}
