//! Warnings after a run, from its statistics.

use iosonar_trace::human;
use iosonar_trace::run_info::{DeviceCounters, Statistics};

use crate::address::device_map::device_label;
use crate::address::router::Fit;
use crate::advice::remedies::OtherIo;
use crate::config::options::Options;
use crate::pipeline::prepare::PrepareStats;

/// Warnings from the statistics alone.
pub fn after(options: &Options, prepare_stats: &PrepareStats, s: &Statistics) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn_if = |condition: bool, text: String| warnings.extend(condition.then_some(text));
    let reads = s.reads.max(1) as f64;
    // Otherwise the target's size was checked before the run.
    warn_if(
        options.method.has_device()
            && options.is_piped()
            && (s.wrap_factor >= 2.0 || (s.wrap_factor < 0.5 && s.requests > 0)),
        format!(
            "the load spans {} times the target's size; use a target of about the original's size",
            human::factor(s.wrap_factor)
        ),
    );
    let has_device = options.method.has_device();
    let name = |target: &Option<String>| match target.as_deref() {
        Some(path) if has_device => path.to_owned(),
        _ => "the simulated device".to_owned(),
    };
    for device in s.devices.iter().filter(|device| device.wrap_factor.is_some_and(|factor| factor > 1.0)) {
        warn_if(
            options.target.rules.fit == Fit::Wrap,
            format!("requests beyond the end of {} wrapped around", name(&device.target)),
        );
    }
    for device in s.devices.iter().filter(|device| device.wrap_factor.is_some_and(|factor| factor != 1.0)) {
        warn_if(
            options.target.rules.fit == Fit::Scale,
            format!("positions were scaled to {}: sequential requests now have gaps or overlap", name(&device.target)),
        );
    }
    let unmapped: Vec<_> = s.devices.iter().filter(|device| device.target.is_none()).collect();
    warn_if(
        !unmapped.is_empty(),
        format!(
            "skipped {} to devices without a --target: {}",
            human::counted(unmapped.iter().map(|device| device.requests).sum(), "request"),
            unmapped.iter().map(|d| device_label(usize::from(d.device), &d.source)).collect::<Vec<_>>().join(", ")
        ),
    );
    let writes: u64 = s.devices.iter().filter(|d| d.target.is_some()).map(|d| d.writes + d.others).sum();
    warn_if(
        options.target.rules.reads_only && writes > 0,
        format!("skipped {} that are not reads (--reads-only)", human::counted(writes, "request")),
    );
    let (bad_lines, zero_reads) = (s.bad_lines.unwrap_or(0), s.zero_reads.unwrap_or(0));
    warn_if(bad_lines > 0, format!("{} of the load could not be parsed", human::counted(bad_lines, "line")));
    warn_if(
        !prepare_stats.load_complete,
        "the load itself is incomplete: its recording or conversion was cut short".into(),
    );
    for what in options.pacing.distortions() {
        warn_if(true, format!("{what} distorts a recorded load"));
    }
    warn_if(
        s.dropped as f64 > 0.05 * s.requests as f64,
        "more than 5 % of the requests were dropped; use --conflicts partial or ordering to keep them".into(),
    );
    warn_if(
        zero_reads as f64 > 0.01 * reads,
        format!(
            "{} of {} returned only zeros: reads of never-written areas are too fast; fill the target with data first: \
             `iosonar device wipe {}` (destroys its data)",
            human::count(zero_reads),
            human::counted(s.reads, "read"),
            targets_read(s)
        ),
    );
    warn_if(
        s.skipped.too_large > 0,
        format!(
            "skipped {} larger than the memory for buffers; raise --buffers",
            human::counted(s.skipped.too_large, "request")
        ),
    );
    let written = Some(prepare_stats.written).filter(|written| written.bytes > 0);
    let of_program = prepare_stats.written_by_program.iter().map(|(data, written)| (data, *written, s.writes > 0));
    for (data, written, is_written) in std::iter::once((&options.data, written, written.is_some())).chain(of_program) {
        let odd = data.warning().filter(|_| is_written);
        let few = written.and_then(|written| data.duplicate_shortfall(&written));
        let is_new = |warning: &String| !warnings.contains(warning);
        let new: Vec<String> = odd.into_iter().chain(few).filter(is_new).collect();
        warnings.extend(new);
    }
    warnings
}

fn targets_read(s: &Statistics) -> String {
    let mut targets: Vec<_> = s.devices.iter().filter(|d| d.reads > 0).filter_map(|d| d.target.as_deref()).collect();
    targets.sort_unstable();
    targets.dedup();
    targets.join(" and ")
}

/// Below this mean number of requests in flight, the number in the device is not compared.
const MIN_IN_FLIGHT: f64 = 2.0;

/// Mean number of requests in flight over the duration of the run.
pub fn mean_in_flight(s: &Statistics) -> f64 {
    let total_s = s.latency_us.as_ref().map_or(0.0, |q| q.mean / 1e6 * s.completed as f64);
    if s.elapsed_s > 0.0 { total_s / s.elapsed_s } else { 0.0 }
}

/// Compares the disk's own counters with the replay: did its requests reach the disk as issued?
pub fn device_counters(s: &Statistics, counters: &DeviceCounters, is_file: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let (in_flight, disk) = (mean_in_flight(s), &counters.disk);
    let in_disk = if s.elapsed_s > 0.0 { counters.busy_s / s.elapsed_s } else { 0.0 };
    if counters.requests > 0 && in_flight >= MIN_IN_FLIGHT && in_disk < 0.5 * in_flight {
        warnings.push(format!(
            "the replay had {} requests in flight on average, but {disk} only {}: a layer above it (file system locks, a \
             full queue, a busy processor) delayed them, which is part of the latencies",
            human::rate(in_flight),
            human::rate(in_disk)
        ));
    }
    // A file system adds its own, and splits requests.
    if let Some(all) = received(s.completed, counters, if is_file { OTHERS } else { 1.5 }) {
        warnings.push(format!(
            "{}: requests were split, or other programs used the disk; `iosonar record --device \
             /dev/{disk}` shows them",
            all.clause()
        ));
    }
    warnings
}

/// From this many requests for one of the replay on, others were not a file system's.
const OTHERS: f64 = 4.0;

/// Other programs used the disk: it received far more than a file system adds.
pub fn other_io(completed: u64, counters: &[DeviceCounters]) -> Option<OtherIo> {
    if let [counters] = counters { received(completed, counters, OTHERS) } else { None }
}

fn received(completed: u64, counters: &DeviceCounters, factor: f64) -> Option<OtherIo> {
    let received = counters.requests + counters.merged;
    (completed >= 100 && received as f64 > factor * completed as f64).then(|| OtherIo {
        disk: counters.disk.clone(),
        received,
        replayed: completed,
    })
}

#[cfg(test)]
mod tests {
    use iosonar_device::geometry::Geometry;
    use iosonar_trace::{IoResult, Nanos, Op, Outcome, Request, Sector, Sectors};

    use super::*;
    use crate::address::device_map::DeviceMap;
    use crate::issuer::LoopCounters;
    use crate::result::statistics::{Counter, StatisticsInputs};

    /// A thousand reads within a second.
    fn statistics(latency_ms: i64) -> Statistics {
        let mut counter = Counter::new();
        for i in 0..1000 {
            let completed = Nanos(1_000_000 * i as i64 + 1_000_000);
            let issued = completed - Nanos(latency_ms * 1_000_000);
            counter.add(
                &IoResult {
                    issued: Some(issued),
                    completed: Some(completed),
                    bytes_done: 4096,
                    in_flight: 1,
                    outcome: Outcome::Ok,
                    ..IoResult::of(&Request::new(issued, Op::Read, Sector(i * 8), Sectors(8)), i)
                },
                0,
            );
        }
        counter.statistics(&StatisticsInputs {
            prepare_stats: &PrepareStats::default(),
            loop_counters: Some(&LoopCounters::default()),
            map: &DeviceMap::all_to_first(),
            targets: &[("x".into(), Geometry::new(1 << 30, 512))],
            is_timed: false,
            waits_for_completions: false,
            is_complete: true,
            other_io: None,
        })
    }

    fn counters(requests: u64, busy_s: f64) -> DeviceCounters {
        DeviceCounters { disk: "sda".into(), requests, merged: 0, busy_s, seconds: 1.2 }
    }

    #[test]
    fn warns_if_the_disk_had_far_fewer_requests_in_flight() {
        let deep = statistics(8);
        assert!((mean_in_flight(&deep) - 8.0).abs() < 0.01, "{}", mean_in_flight(&deep));
        assert!(device_counters(&deep, &counters(1000, 7.5), false).is_empty());
        let warning = device_counters(&deep, &counters(1000, 1.0), false).concat();
        assert!(warning.contains("had 8 requests in flight on average, but sda only 1:"), "{warning}");
        assert!(device_counters(&statistics(1), &counters(1000, 0.1), false).is_empty(), "depth of about one");
        assert!(device_counters(&deep, &counters(0, 0.0), false).is_empty(), "a disk without counters");
    }

    #[test]
    fn a_disk_with_far_more_requests_served_other_programs() {
        assert_eq!(other_io(1000, &[counters(3900, 1.0)]), None, "a file system's own");
        let found = other_io(6414, &[counters(62_192, 1.0)]).unwrap();
        assert_eq!(found.clause(), "the disk sda received 62,192 requests for 6,414 of the replay");
        assert_eq!(other_io(1000, &[]), None);
    }

    #[test]
    fn warns_if_the_disk_received_far_more_requests() {
        assert!(device_counters(&statistics(1), &counters(1400, 1.0), false).is_empty());
        let warning = device_counters(&statistics(1), &counters(2000, 1.0), false).concat();
        assert!(warning.contains("received 2,000 requests for 1,000 of the replay"), "{warning}");
        assert!(device_counters(&statistics(1), &counters(2000, 1.0), true).is_empty(), "those of a journal");
    }
}
