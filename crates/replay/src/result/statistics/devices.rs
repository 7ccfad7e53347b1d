//! Statistics of each device of the load.

use iosonar_pacing::histogram::Times;
use iosonar_trace::run_info::DeviceStatistics;
use iosonar_trace::{DeviceId, IoResult, Outcome};

use super::inputs::StatisticsInputs;

/// Counts the rows of one device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceCounter {
    rows: u64,
    ops: [u64; 5],
    outcomes: [u64; Outcome::ALL.len()],
    pushed_back: u64,
    bytes: u64,
    latency: Times,
}

impl DeviceCounter {
    fn new() -> Self {
        Self {
            rows: 0,
            ops: [0; 5],
            outcomes: [0; Outcome::ALL.len()],
            pushed_back: 0,
            bytes: 0,
            latency: Times::growing(),
        }
    }

    fn add(&mut self, record: &IoResult) {
        self.rows += 1;
        self.ops[record.op as usize] += 1;
        self.outcomes[record.outcome as usize] += 1;
        self.pushed_back += u64::from(record.pushed_back);
        self.bytes = self.bytes.saturating_add(record.bytes_moved());
        if let Some(latency) = record.latency() {
            self.latency.add(latency);
        }
    }

    fn statistics(&self, device: u16, inputs: &StatisticsInputs<'_>, elapsed_s: f64) -> DeviceStatistics {
        let per_second = |x: u64| if elapsed_s > 0.0 { x as f64 / elapsed_s } else { 0.0 };
        let [reads, writes, others @ ..] = self.ops;
        let outcome = |o: Outcome| self.outcomes[o as usize];
        let issued = [Outcome::Ok, Outcome::Short, Outcome::Error, Outcome::Unfinished, Outcome::Corrupt];
        let completed = self.latency.count();
        DeviceStatistics {
            device,
            source: inputs.prepare_stats.devices.get(usize::from(device)).map(|d| d.name.clone()).unwrap_or_default(),
            target: inputs.target_of(device).map(|(path, _)| iosonar_trace::path_text(path)),
            requests: self.rows,
            completed,
            reads,
            writes,
            others: others.iter().sum(),
            left_out: self.rows - issued.map(outcome).iter().sum::<u64>(),
            pushed_back: self.pushed_back,
            errors: outcome(Outcome::Error),
            short: outcome(Outcome::Short),
            unfinished: outcome(Outcome::Unfinished),
            iops: per_second(completed),
            bytes_per_s: per_second(self.bytes),
            wrap_factor: inputs.wrap_factor(device),
            latency_us: self.latency.quantiles(),
        }
    }
}

/// Counts the rows of each device. A device takes no memory before its first row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices(Vec<Option<Box<DeviceCounter>>>);

impl Devices {
    #[inline]
    pub fn add(&mut self, record: &IoResult) {
        let DeviceId(device) = record.device;
        let device = usize::from(device);
        if device >= self.0.len() {
            self.0.resize_with(device + 1, || None);
        }
        self.0[device].get_or_insert_with(|| Box::new(DeviceCounter::new())).add(record);
    }

    /// The statistics of all devices with rows, in the order of their numbers.
    pub fn statistics(&self, inputs: &StatisticsInputs<'_>, elapsed_s: f64) -> Vec<DeviceStatistics> {
        let used = self.0.iter().enumerate().filter_map(|(device, counter)| Some((device as u16, counter.as_ref()?)));
        used.map(|(device, counter)| counter.statistics(device, inputs, elapsed_s)).collect()
    }
}
