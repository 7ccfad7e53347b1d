//! The time of the run on the clock of the recording: only requests of that time can be those of the run.

use iosonar_trace::run_info::TargetKind;
use iosonar_trace::{Metadata, RunInfo};

use super::expected::RunSummary;

/// The most that two readings of the wall clock on one machine differ by, unless the clock was set in between.
const WALL_ERROR_NS: i64 = 500_000_000;

/// Within one boot, wall clock minus `CLOCK_MONOTONIC` is constant unless the wall clock is set. The two clocks are
/// read one after the other, so the difference has this error.
const SAME_BOOT_NS: u64 = 100_000_000;

/// The recorder and the replay read the same clock; the replay reads it first.
const SAME_CLOCK_ERROR_NS: i64 = 1_000_000;

/// The position of the run's virtual zero in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRelation {
    zero_ns: i64,
    error_ns: i64,
    /// Whether completion means that the device completed the request: nothing stays in the page cache.
    is_direct: bool,
}

impl ClockRelation {
    /// From both footers; `None` if one does not tell its time.
    pub fn of(run: &Metadata, recording: &Metadata) -> Option<Self> {
        let run = run.run.as_deref()?;
        let epoch = recording.epoch_unix_ns?;
        let started = run.started_unix_ns.value()?;
        let by_boot = || {
            let (started_monotonic, clocks) = (run.started_monotonic_ns.value()?, recording.clocks?);
            let distances = [started.checked_sub(started_monotonic)?, clocks.unix_ns.checked_sub(clocks.monotonic_ns)?];
            // Transforms that shift rows in time have shifted the epoch as well.
            let zero = started_monotonic.checked_sub(epoch.checked_sub(distances[1])?)?;
            (distances[0].abs_diff(distances[1]) <= SAME_BOOT_NS).then_some((zero, SAME_CLOCK_ERROR_NS))
        };
        let (zero_ns, error_ns) = by_boot().or_else(|| Some((started.checked_sub(epoch)?, WALL_ERROR_NS)))?;
        Some(Self { zero_ns, error_ns, is_direct: is_direct(run) })
    }

    /// The time in which the recording can contain requests of the run.
    pub fn window(&self, summary: &RunSummary) -> Window {
        let at = |ns: i64, error: i64| self.zero_ns.saturating_add(ns).saturating_add(error);
        Window {
            first: summary.first_issued.map_or(i64::MIN, |ns| at(ns, -self.error_ns)),
            last: summary
                .last_completed
                .filter(|_| self.is_direct && !summary.has_unfinished)
                .map(|ns| at(ns, self.error_ns)),
        }
    }

    /// The difference in time between the recording and the run, where `offset_ns` is the difference of the zeros
    /// according to the requests; negative if they were recorded earlier. `None` if clock errors explain it.
    pub fn apart(&self, offset_ns: i64) -> Option<i64> {
        let apart = offset_ns.saturating_sub(self.zero_ns);
        (apart.unsigned_abs() > WALL_ERROR_NS.unsigned_abs()).then_some(apart)
    }

    /// The same for a recording made during the run. Requests may then be late, as they may have waited, but not early:
    /// a request is not recorded before it is issued, except by read-ahead of the page cache.
    pub fn too_early(&self, offset_ns: i64) -> Option<i64> {
        let apart = offset_ns.saturating_sub(self.zero_ns);
        (self.is_direct && apart < -self.error_ns).then_some(apart)
    }
}

fn is_direct(run: &RunInfo) -> bool {
    let targets = run.targets.list();
    let are_devices =
        !targets.is_empty() && targets.iter().all(|target| target.kind.value() == Some(TargetKind::Block));
    are_devices && !run.is_cached()
}

/// The time of the run in the recording, extended by the clocks' error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    first: i64,
    last: Option<i64>,
}

impl Window {
    /// Whether a row can be of the run. A device stacked below the run's target may write after the end of the run:
    /// such rows are not `of_target`.
    pub fn contains(&self, at_ns: i64, of_target: bool) -> bool {
        at_ns >= self.first && self.last.is_none_or(|last| !of_target || at_ns <= last)
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Clocks, Kind};
    use serde_json::json;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn run(started_s: i64, monotonic_s: i64) -> Metadata {
        let run = json!({"started_unix_ns": started_s * SECOND, "started_monotonic_ns": monotonic_s * SECOND,
                         "targets": [{"path": "/dev/sdb", "kind": "block"}]});
        Metadata { run: serde_json::from_value(run).unwrap(), ..Metadata::new(Kind::Replay, "test") }
    }

    fn recording(epoch_s: i64, clocks: Option<(i64, i64)>) -> Metadata {
        let clocks =
            clocks.map(|(unix, monotonic)| Clocks { unix_ns: unix * SECOND, monotonic_ns: monotonic * SECOND });
        Metadata { epoch_unix_ns: Some(epoch_s * SECOND), clocks, ..Metadata::new(Kind::Load, "record") }
    }

    fn zero_and_error(run: &Metadata, recording: &Metadata) -> Option<(i64, i64)> {
        ClockRelation::of(run, recording).map(|relation| (relation.zero_ns, relation.error_ns))
    }

    #[test]
    fn within_one_boot_the_monotonic_clock_relates_the_files() {
        let run = run(1010, 17);
        assert_eq!(zero_and_error(&run, &recording(1000, Some((1000, 7)))), Some((10 * SECOND, SAME_CLOCK_ERROR_NS)));
        // The recording from its fourth second on, shifted to begin at 0.
        assert_eq!(zero_and_error(&run, &recording(1004, Some((1000, 7)))), Some((6 * SECOND, SAME_CLOCK_ERROR_NS)));
        // Another boot or machine; or the machine was suspended, or its clock set, in between.
        assert_eq!(zero_and_error(&run, &recording(1000, Some((1000, 8)))), Some((10 * SECOND, WALL_ERROR_NS)));
        assert_eq!(zero_and_error(&run, &recording(1000, None)), Some((10 * SECOND, WALL_ERROR_NS)));
    }

    #[test]
    fn without_the_time_of_both_files_there_is_no_relation() {
        let without = Metadata::new(Kind::Load, "test");
        assert_eq!(zero_and_error(&run(1, 1), &without), None);
        assert_eq!(zero_and_error(&Metadata::new(Kind::Replay, "test"), &recording(1, None)), None);
    }

    #[test]
    fn the_window_ends_with_the_run_only_for_direct_io() {
        let relation = ClockRelation::of(&run(1010, 17), &recording(1000, Some((1000, 7)))).unwrap();
        let summary =
            RunSummary { first_issued: Some(SECOND), last_completed: Some(2 * SECOND), ..RunSummary::default() };
        let window = relation.window(&summary);
        let contained = |window: Window, of_target| {
            [11 * SECOND - 2_000_000, 11 * SECOND, 12 * SECOND, 12 * SECOND + 2_000_000]
                .map(|at| window.contains(at, of_target))
        };
        assert_eq!(contained(window, true), [false, true, true, false]);
        assert_eq!(contained(window, false), [false, true, true, true]);
        let unfinished = RunSummary { has_unfinished: true, ..summary };
        assert_eq!(contained(relation.window(&unfinished), true), [false, true, true, true]);
        for key in ["/options/no_o_direct", "/targets/0/kind"] {
            let mut run = serde_json::to_value(run(1010, 17).run).unwrap();
            run["options"] = json!({"no_o_direct": false});
            *run.pointer_mut(key).unwrap() = if key.ends_with("kind") { "file".into() } else { true.into() };
            let run = Metadata { run: serde_json::from_value(run).unwrap(), ..Metadata::new(Kind::Replay, "test") };
            let relation = ClockRelation::of(&run, &recording(1000, None)).unwrap();
            assert!(
                relation.window(&RunSummary { last_completed: Some(0), ..RunSummary::default() }).last.is_none(),
                "{key}"
            );
        }
    }

    #[test]
    fn a_difference_within_the_clock_error_is_not_another_run() {
        let relation = ClockRelation::of(&run(1010, 17), &recording(1000, None)).unwrap();
        assert_eq!(relation.apart(10 * SECOND + WALL_ERROR_NS), None);
        assert_eq!(relation.apart(13 * SECOND), Some(3 * SECOND));
        assert_eq!([13 * SECOND, 7 * SECOND].map(|offset| relation.too_early(offset)), [None, Some(-3 * SECOND)]);
        let read_ahead = ClockRelation { is_direct: false, ..relation };
        assert_eq!(read_ahead.too_early(7 * SECOND), None);
    }
}
