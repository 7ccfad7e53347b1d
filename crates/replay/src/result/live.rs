//! What is counted of requests while a run goes on.

use std::sync::Arc;

use iosonar_device::Device;
use iosonar_device::meter::Meter;
use iosonar_pacing::live::{DeviceName, Live, Row, Words};
use iosonar_trace::{DeviceId, IoResult, Op, Outcome, path_text};

use crate::address::device_map::DeviceMap;

/// Counts requests; `is_timed` is whether they have scheduled times.
pub fn of_requests(is_timed: bool) -> Live {
    let words = Words {
        plural: "requests",
        operation: |index| Op::ALL.get(index).map(|op| op.name()),
        outcome: |index| Outcome::ALL.get(index).map(|outcome| outcome.name()),
        has_waiting: true,
    };
    Live::new(words, is_timed)
}

/// Names the devices of the load, with their targets, and the counters of these.
pub fn describe(
    live: &Live,
    of_load: &[iosonar_trace::Device],
    map: &DeviceMap,
    targets: &[Device],
    meters: &Arc<[Meter]>,
) {
    let target = |device: usize| {
        let target = targets.get(usize::from(map.target_of(DeviceId(device as u16))?))?;
        Some(path_text(&target.path))
    };
    let names = of_load
        .iter()
        .enumerate()
        .map(|(number, device)| DeviceName { source: device.name.clone(), target: target(number).unwrap_or_default() });
    live.name_devices(names.collect());
    let meters = Arc::clone(meters);
    live.read_counters(move || meters.iter().filter_map(Meter::read).collect());
}

/// What is counted of a row.
pub fn row_of(record: &IoResult) -> Row {
    Row {
        operation: record.op as usize,
        outcome: record.outcome as usize,
        device: record.device.0.into(),
        scheduled: record.scheduled,
        issued: record.issued,
        latency: record.latency(),
        bytes: record.bytes_moved(),
        has_error: matches!(record.outcome, Outcome::Error | Outcome::Corrupt),
        is_dropped: record.outcome == Outcome::Dropped,
        waiting: record.waiting,
    }
}
