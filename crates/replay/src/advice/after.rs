//! What a run shows, once it is over.

use iosonar_trace::human;
use iosonar_trace::run_info::{DeviceCounters, Statistics};

use crate::address::device_map::device_label;
use crate::address::placement::Fit;
use crate::config::options::Options;
use crate::pipeline::prepare::PrepareStats;

/// The manual's advice, as far as a run shows that it was not followed.
pub fn after(options: &Options, fed: &PrepareStats, s: &Statistics) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |when: bool, text: String| all.extend(when.then_some(text));
    let reads = s.reads.max(1) as f64;
    // Whether the target is of about the right size was said before the run, unless nothing was known of the load.
    say(
        options.method.has_device()
            && options.is_piped()
            && (s.wrap_factor >= 2.0 || (s.wrap_factor < 0.5 && s.requests > 0)),
        format!(
            "the load reaches over {} times the target's size; a target of about the original's size gives other results",
            human::factor(s.wrap_factor)
        ),
    );
    for device in s.devices.iter().filter(|device| device.wrap_factor.is_some_and(|factor| factor > 1.0)) {
        say(
            options.target.rules.fit == Fit::Wrap,
            format!("sectors beyond the end of {} wrapped around", device.target.as_deref().unwrap_or_default()),
        );
    }
    for device in s.devices.iter().filter(|device| device.wrap_factor.is_some_and(|factor| factor != 1.0)) {
        say(
            options.target.rules.fit == Fit::Scale && options.method.has_device(),
            format!(
                "positions were scaled to {}: runs of sequential requests are torn apart or pushed together",
                device.target.as_deref().unwrap_or_default()
            ),
        );
    }
    let lost: Vec<_> = s.devices.iter().filter(|device| device.target.is_none()).collect();
    say(
        !lost.is_empty(),
        format!(
            "{} left out, whose devices no --target names: {}",
            human::counted(lost.iter().map(|device| device.requests).sum(), "request"),
            lost.iter().map(|d| device_label(usize::from(d.device), &d.source)).collect::<Vec<_>>().join(", ")
        ),
    );
    let writes: u64 = s.devices.iter().filter(|d| d.target.is_some()).map(|d| d.writes + d.others).sum();
    say(
        options.target.rules.reads_only && writes > 0,
        format!("{} left out that are no reads (--reads-only)", human::counted(writes, "request")),
    );
    say(s.bad_lines > 0, format!("{} of the load could not be understood", human::counted(s.bad_lines, "line")));
    say(!fed.load_complete, "the load itself was cut short".into());
    say(options.time.speedup != 1.0, format!("a speed-up of {} distorts a natural load", options.time.speedup));
    say(
        s.dropped as f64 > 0.05 * s.requests as f64,
        "more than 5 % of the requests were dropped; --conflicts partial or ordering keeps them".into(),
    );
    say(
        s.zero_reads as f64 > 0.01 * reads,
        format!(
            "{} of {} came back all zero: areas that were never written answer too fast; fill the target with data \
             first, by `iosonar device wipe {}`",
            human::count(s.zero_reads),
            human::counted(s.reads, "read"),
            read_from(s)
        ),
    );
    say(
        s.skipped.too_large > 0,
        format!(
            "{} left out, larger than the memory for buffers; raise --buffers",
            human::counted(s.skipped.too_large, "request")
        ),
    );
    all.extend(options.data.warning().filter(|_| fed.written.bytes > 0));
    all.extend(options.data.duplicate_shortfall(&fed.written));
    all
}

/// The targets that were read from.
fn read_from(s: &Statistics) -> String {
    let mut targets: Vec<_> = s.devices.iter().filter(|d| d.reads > 0).filter_map(|d| d.target.as_deref()).collect();
    targets.sort_unstable();
    targets.dedup();
    targets.join(" and ")
}

/// Requests in flight, on average, that the replay must have had for it to matter that the device had fewer.
const DEEP: f64 = 2.0;

/// The replay's mean number of requests in flight, over its duration.
pub fn mean_in_flight(s: &Statistics) -> f64 {
    let total_s = s.latency_us.as_ref().map_or(0.0, |q| q.mean / 1e6 * s.completed as f64);
    if s.elapsed_s > 0.0 { total_s / s.elapsed_s } else { 0.0 }
}

/// What the device counted itself, against what the replay did: whether requests reached it as they were meant.
pub fn seen(s: &Statistics, counted: &DeviceCounters) -> Vec<String> {
    let mut all = Vec::new();
    let (meant, disk) = (mean_in_flight(s), &counted.disk);
    let had = if s.elapsed_s > 0.0 { counted.busy_s / s.elapsed_s } else { 0.0 };
    if counted.requests > 0 && meant >= DEEP && had < 0.5 * meant {
        all.push(format!(
            "the replay had {} requests in flight on average, but {disk} saw only {}: something above it \
             (locks of a file system, a full queue, a busy processor) let them through later, and latencies include that",
            human::rate(meant),
            human::rate(had)
        ));
    }
    let pieces = counted.requests + counted.merged;
    if s.completed >= 100 && pieces as f64 > 1.5 * s.completed as f64 {
        all.push(format!(
            "the disk {disk} was asked {} times for {} of the replay: they were split, a file system added its own, \
             or others used it as well; `iosonar record --device /dev/{disk}` shows what",
            human::count(pieces),
            human::counted(s.completed, "request")
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{IoResult, Nanos, Op, Outcome, Request, Sector, Sectors};

    use super::*;
    use crate::address::device_map::DeviceMap;
    use crate::address::placement::Geometry;
    use crate::issuer::LoopCounters;
    use crate::result::statistics::{Closing, Counter};

    /// A thousand reads in a second, each of which took that long.
    fn ran(latency_ms: i64) -> Statistics {
        let mut counter = Counter::new();
        for i in 0..1000 {
            let completed = Nanos(1_000_000 * i as i64 + 1_000_000);
            let issued = completed - Nanos(latency_ms * 1_000_000);
            counter.add(&IoResult {
                issued: Some(issued),
                completed: Some(completed),
                bytes_done: 4096,
                in_flight: 1,
                outcome: Outcome::Ok,
                ..IoResult::of(&Request::new(issued, Op::Read, Sector(i * 8), Sectors(8)), i)
            });
        }
        counter.close(&Closing {
            fed: &PrepareStats::default(),
            counters: &LoopCounters::default(),
            map: &DeviceMap::all_to_first(),
            targets: &[("x".into(), Geometry::new(1 << 30, 512))],
            timed: false,
            complete: true,
        })
    }

    fn counted(requests: u64, busy_s: f64) -> DeviceCounters {
        DeviceCounters { disk: "sda".into(), requests, merged: 0, busy_s, seconds: 1.2 }
    }

    #[test]
    fn a_device_that_saw_fewer_at_once_is_told_of() {
        let deep = ran(8);
        assert!((mean_in_flight(&deep) - 8.0).abs() < 0.01, "{}", mean_in_flight(&deep));
        assert!(seen(&deep, &counted(1000, 7.5)).is_empty());
        let said = seen(&deep, &counted(1000, 1.0)).concat();
        assert!(said.contains("had 8 requests in flight on average, but sda saw only 1:"), "{said}");
        assert!(seen(&ran(1), &counted(1000, 0.1)).is_empty(), "hardly more than one: nothing to lose");
        assert!(seen(&deep, &counted(0, 0.0)).is_empty(), "a device that counts nothing");
    }

    #[test]
    fn more_requests_than_were_made_are_told_of() {
        assert!(seen(&ran(1), &counted(1400, 1.0)).is_empty());
        let said = seen(&ran(1), &counted(2000, 1.0)).concat();
        assert!(said.contains("asked 2,000 times for 1,000 requests"), "{said}");
    }
}
