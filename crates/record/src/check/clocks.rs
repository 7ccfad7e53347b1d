//! When the run was, on the recording's time: only what is not of another time can stand for its requests.

use iosonar_trace::run_info::TargetKind;
use iosonar_trace::{Metadata, RunInfo};

use super::expected::Told;

/// What two readings of the time of day on one machine may differ by, unless it was set in between.
const WALL_ERROR_NS: i64 = 500_000_000;

/// Time of day less `CLOCK_MONOTONIC` is the same all the time of one boot, as nobody sets the one; both were read one after
/// the other, though.
const SAME_BOOT_NS: u64 = 100_000_000;

/// The kernel's events and the replay read one and the same clock, the replay first.
const SAME_CLOCK_ERROR_NS: i64 = 1_000_000;

/// Where the run's virtual zero is in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    zero_ns: i64,
    error_ns: i64,
    /// Whether all requests ended when they were told to have: nothing was left in the page cache.
    is_direct: bool,
}

impl Relation {
    /// By what both footers say; `None` if one does not say when it was.
    pub fn of(run: &Metadata, recording: &Metadata) -> Option<Self> {
        let told = run.run.as_deref()?;
        let epoch = recording.epoch_unix_ns?;
        let started = told.started_unix_ns.value()?;
        let by_boot = || {
            let (started_monotonic, clocks) = (told.started_monotonic_ns.value()?, recording.clocks?);
            let distances = [started.checked_sub(started_monotonic)?, clocks.unix_ns.checked_sub(clocks.monotonic_ns)?];
            // Rows that were moved in time since moved the epoch with them.
            let zero = started_monotonic.checked_sub(epoch.checked_sub(distances[1])?)?;
            (distances[0].abs_diff(distances[1]) <= SAME_BOOT_NS).then_some((zero, SAME_CLOCK_ERROR_NS))
        };
        let (zero_ns, error_ns) = by_boot().or_else(|| Some((started.checked_sub(epoch)?, WALL_ERROR_NS)))?;
        Some(Self { zero_ns, error_ns, is_direct: is_direct(told) })
    }

    /// From when to when the recording can hold what the run did.
    pub fn window(&self, told: &Told) -> Window {
        let at = |ns: i64, error: i64| self.zero_ns.saturating_add(ns).saturating_add(error);
        Window {
            first: told.first_issued.map_or(i64::MIN, |ns| at(ns, -self.error_ns)),
            last: told
                .last_completed
                .filter(|_| self.is_direct && !told.has_unfinished)
                .map(|ns| at(ns, self.error_ns)),
        }
    }

    /// How far off the recorded requests are, given the distance of the two zeros that their times make likely; negative if
    /// they were recorded earlier. `None` if that may be an error of the clocks.
    pub fn apart(&self, offset_ns: i64) -> Option<i64> {
        let apart = offset_ns.saturating_sub(self.zero_ns);
        (apart.unsigned_abs() > WALL_ERROR_NS.unsigned_abs()).then_some(apart)
    }

    /// The same where all of them were recorded while the run went on. Then they may be late, as they may have waited, but not
    /// too early: a request is not recorded before it is issued, unless the page cache reads ahead.
    pub fn too_early(&self, offset_ns: i64) -> Option<i64> {
        let apart = offset_ns.saturating_sub(self.zero_ns);
        (self.is_direct && apart < -self.error_ns).then_some(apart)
    }
}

fn is_direct(run: &RunInfo) -> bool {
    let targets = run.targets.list();
    let are_devices =
        !targets.is_empty() && targets.iter().all(|target| target.kind.value() == Some(TargetKind::Block));
    are_devices && !run.has("no_o_direct")
}

/// The run's time in the recording, the clocks' error added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    first: i64,
    last: Option<i64>,
}

impl Window {
    /// Whether a row can be of the run. What is stacked below the run's target may write later than the run ends: then it is
    /// not `of_target`.
    pub fn holds(&self, at_ns: i64, of_target: bool) -> bool {
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
        Relation::of(run, recording).map(|relation| (relation.zero_ns, relation.error_ns))
    }

    #[test]
    fn the_clock_that_nobody_sets_is_taken_where_both_read_the_same() {
        let run = run(1010, 17);
        assert_eq!(zero_and_error(&run, &recording(1000, Some((1000, 7)))), Some((10 * SECOND, SAME_CLOCK_ERROR_NS)));
        // From the fourth second on, moved to the beginning.
        assert_eq!(zero_and_error(&run, &recording(1004, Some((1000, 7)))), Some((6 * SECOND, SAME_CLOCK_ERROR_NS)));
        // Another boot or machine, or one that slept or was set meanwhile.
        assert_eq!(zero_and_error(&run, &recording(1000, Some((1000, 8)))), Some((10 * SECOND, WALL_ERROR_NS)));
        assert_eq!(zero_and_error(&run, &recording(1000, None)), Some((10 * SECOND, WALL_ERROR_NS)));
    }

    #[test]
    fn nothing_is_known_where_a_file_does_not_tell_its_time() {
        let without = Metadata::new(Kind::Load, "test");
        assert_eq!(zero_and_error(&run(1, 1), &without), None);
        assert_eq!(zero_and_error(&Metadata::new(Kind::Replay, "test"), &recording(1, None)), None);
    }

    #[test]
    fn the_end_counts_only_where_requests_end_when_they_are_told_to() {
        let relation = Relation::of(&run(1010, 17), &recording(1000, Some((1000, 7)))).unwrap();
        let told = Told { first_issued: Some(SECOND), last_completed: Some(2 * SECOND), ..Told::default() };
        let window = relation.window(&told);
        let held = |window: Window, of_target| {
            [11 * SECOND - 2_000_000, 11 * SECOND, 12 * SECOND, 12 * SECOND + 2_000_000]
                .map(|at| window.holds(at, of_target))
        };
        assert_eq!(held(window, true), [false, true, true, false]);
        assert_eq!(held(window, false), [false, true, true, true]);
        let unfinished = Told { has_unfinished: true, ..told };
        assert_eq!(held(relation.window(&unfinished), true), [false, true, true, true]);
        for key in ["/options/no_o_direct", "/targets/0/kind"] {
            let mut told = serde_json::to_value(run(1010, 17).run).unwrap();
            told["options"] = json!({"no_o_direct": false});
            *told.pointer_mut(key).unwrap() = if key.ends_with("kind") { "file".into() } else { true.into() };
            let run = Metadata { run: serde_json::from_value(told).unwrap(), ..Metadata::new(Kind::Replay, "test") };
            let relation = Relation::of(&run, &recording(1000, None)).unwrap();
            assert!(
                relation.window(&super::Told { last_completed: Some(0), ..Told::default() }).last.is_none(),
                "{key}"
            );
        }
    }

    #[test]
    fn what_the_clocks_may_differ_by_is_no_other_run() {
        let relation = Relation::of(&run(1010, 17), &recording(1000, None)).unwrap();
        assert_eq!(relation.apart(10 * SECOND + WALL_ERROR_NS), None);
        assert_eq!(relation.apart(13 * SECOND), Some(3 * SECOND));
        assert_eq!([13 * SECOND, 7 * SECOND].map(|offset| relation.too_early(offset)), [None, Some(-3 * SECOND)]);
        let read_ahead = Relation { is_direct: false, ..relation };
        assert_eq!(read_ahead.too_early(7 * SECOND), None);
    }
}
