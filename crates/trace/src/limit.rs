//! Up to which rate a storage kept up: the evaluation of a replay of growing demand (`ramped`, bursts, ramps).

mod rates;

use serde::Serialize;

use crate::error::Result;
use crate::record::{Outcome, Record};
use crate::stream::Reader;
use crate::units::Nanos;

use rates::Rates;

/// Up to when a storage kept up, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// When the first request that was issued too late should have been issued, in nanoseconds. `None`: none was.
    pub kept_up_until_ns: Option<i64>,
    /// What kept that request: `held_by` as in its row, or `overlap` if it was pushed back.
    pub held_by: Option<&'static str>,
    /// Requests per second that were to be issued in the second before that (in the time since the first of them, if that is
    /// shorter), or in the busiest second of a run that kept up. With a deep queue it is more than the storage can do: what
    /// came too fast waits there before the first request is late.
    pub demanded_per_second: u64,
    /// Requests that completed without an error per second from then on, on average, until the last of them: what the storage does; where it
    /// gave in and that took a second or longer.
    pub done_per_second: Option<f64>,
}

/// Evaluates a run: a request is late if it was issued more than `late` after its deadline. The specification of the
/// method (blkreplay's ramped loads) sets one second. What was left out was demanded of no storage, and what failed was not
/// done. Memory is bounded: what lasts longer than an hour is counted in longer pieces of time than milliseconds.
///
/// # Errors
/// If the run can't be read.
pub fn limit(run: &mut dyn Reader<Record>, late: Nanos) -> Result<Limit> {
    let (mut demanded, mut done) = (Rates::default(), Rates::default());
    let mut first_late: Option<Record> = None;
    while let Some(record) = run.next()? {
        if record.outcome.is_skipped() {
            continue;
        }
        demanded.count(record.intended);
        if let Some(completed) = record.completed.filter(|_| record.outcome != Outcome::Error) {
            done.count(completed);
        }
        let is_late = record.delay().is_some_and(|delay| delay > late);
        if is_late && first_late.is_none_or(|first| record.intended < first.intended) {
            first_late = Some(record);
        }
    }
    let at = first_late.map(|first| first.intended);
    Ok(Limit {
        kept_up_until_ns: at.map(|at| at.0),
        held_by: first_late.map(|first| if first.pushed_back { "overlap" } else { first.held_by.name() }),
        demanded_per_second: at.map_or_else(|| demanded.busiest_second(), |at| demanded.until(at)),
        done_per_second: at.and_then(|at| done.average_from(at)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Kind, Metadata};
    use crate::request::Op;
    use crate::transforms;
    use crate::units::{Sector, Sectors};
    use crate::{HeldBy, Request};

    struct Run(std::vec::IntoIter<Record>, Metadata);

    impl Reader<Record> for Run {
        fn next(&mut self) -> Result<Option<Record>> {
            Ok(self.0.next())
        }
        fn metadata(&self) -> &Metadata {
            &self.1
        }
    }

    fn of(rows: Vec<Record>) -> Limit {
        limit(&mut Run(rows.into_iter(), Metadata::new(Kind::Replay, "test")), Nanos(1_000_000_000)).unwrap()
    }

    struct Load(u64, Metadata);

    impl Reader<Request> for Load {
        fn next(&mut self) -> Result<Option<Request>> {
            self.0 = self.0.saturating_sub(1);
            Ok((self.0 > 0).then(|| Request::new(Nanos::ZERO, Op::Read, Sector(self.0), Sectors(8))))
        }
        fn metadata(&self) -> &Metadata {
            &self.1
        }
    }

    /// A ramp, replayed on a storage that does exactly so many requests per second, one after the other.
    fn replayed(slope: u32, count: u64, per_second: i64) -> Limit {
        let pipeline = transforms::parse(&format!("ramped slope={slope}")).unwrap();
        let mut load = pipeline.apply(Box::new(Load(count, Metadata::new(Kind::Load, "test")))).unwrap();
        let mut records = Vec::new();
        let mut free_at = Nanos::ZERO;
        while let Some(request) = load.next().unwrap() {
            let issued = free_at.max(request.at);
            free_at = issued + Nanos(1_000_000_000 / per_second);
            records.push(Record {
                issued: Some(issued),
                completed: Some(free_at),
                in_flight: 1,
                outcome: Outcome::Ok,
                ..Record::of(&request, records.len() as u64)
            });
        }
        records.reverse();
        of(records)
    }

    #[test]
    fn a_storage_of_known_speed_is_measured() {
        let limit = replayed(10, 40_000, 500);
        // 500 per second are demanded at 50 s. From there on the backlog grows as 5·(t − 50 s)² requests, and a delay of
        // one second is one of 500: at 60 s, when 600 per second are demanded, 595 on average over the last second.
        let until = limit.kept_up_until_ns.unwrap() as f64 / 1e9;
        assert!((until - 60.0).abs() < 0.2, "{until}");
        assert!(limit.demanded_per_second.abs_diff(595) < 8, "{limit:?}");
        assert!((limit.done_per_second.unwrap() - 500.0).abs() < 5.0, "{limit:?}");
    }

    /// Asked for at even distances, and issued two seconds late from a certain request on.
    fn steady_rows(count: i64, distance_ns: i64, late_from: i64) -> Vec<Record> {
        let rows = (0..count).map(|i| {
            let request = Request::new(Nanos(i * distance_ns), Op::Read, Sector(0), Sectors(8));
            let late = if i >= late_from { Nanos(2_000_000_000) } else { Nanos::ZERO };
            let issued = Some(request.at + late);
            Record { issued, completed: issued, outcome: Outcome::Ok, ..Record::of(&request, i as u64) }
        });
        rows.collect()
    }

    fn steady(count: i64, distance_ns: i64, late_from: i64) -> Limit {
        of(steady_rows(count, distance_ns, late_from).into_iter().rev().collect())
    }

    #[test]
    fn the_burst_that_broke_the_storage_was_demanded() {
        // At each full second a burst of 100 ms, of 100 requests more than the one before; the storage does one each 2 ms, and so
        // is 800 ms behind in the fourth burst, and one second at its end.
        let mut requests = Vec::new();
        for second in 1..8_i64 {
            let step = 100_000_000 / (second * 100);
            requests.extend((0..second * 100).map(|n| Nanos(second * 1_000_000_000 + n * step)));
        }
        let mut free_at = Nanos::ZERO;
        let rows = requests.iter().enumerate().map(|(number, &at)| {
            let issued = free_at.max(at);
            free_at = issued + Nanos(2_000_000);
            let request = Request::new(at, Op::Read, Sector(0), Sectors(8));
            let record = Record::of(&request, number as u64);
            Record { issued: Some(issued), completed: Some(free_at), outcome: Outcome::Ok, ..record }
        });
        let limit = of(rows.collect());
        let at = Nanos(limit.kept_up_until_ns.unwrap());
        let demanded = requests.iter().filter(|&&time| at - Nanos(1_000_000_000) < time && time <= at).count() as u64;
        assert!(demanded > 500, "{demanded}");
        // As many as come within a millisecond.
        assert!(limit.demanded_per_second.abs_diff(demanded) <= 8, "{limit:?}, {demanded}");
    }

    #[test]
    fn in_the_first_second_the_demand_is_a_rate_as_well() {
        for late_from in [0, 3, 105, 1999, 2001, 5000] {
            let limit = steady(6000, 500_000, late_from);
            assert_eq!(limit.kept_up_until_ns, Some(late_from * 500_000));
            assert!(limit.demanded_per_second.abs_diff(2000) <= 20, "late from {late_from}: {limit:?}");
        }
        let short = steady(500, 500_000, 500);
        assert_eq!(short.kept_up_until_ns, None);
        assert!(short.demanded_per_second.abs_diff(2000) <= 20, "{short:?}");
    }

    /// So many, evenly within ten seconds, the whole of them 1.5 s late, and this changed in every second one.
    fn late(count: u64, change: fn(&mut Record)) -> Vec<Record> {
        let row = |number| {
            let at = Nanos((number * 10_000_000_000 / count) as i64);
            let issued = Some(at + Nanos(1_500_000_000));
            let request = Request::new(at, Op::Read, Sector(0), Sectors(8));
            let mut record = Record { issued, completed: issued, outcome: Outcome::Ok, ..Record::of(&request, number) };
            if number % 2 == 1 {
                change(&mut record);
            }
            record
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn what_was_left_out_is_not_demanded_and_what_failed_is_not_done() {
        let limit = of(late(1000, |record| {
            (record.outcome, record.issued, record.completed) = (Outcome::Excluded, None, None);
        }));
        assert_eq!(limit, of(late(500, |_| {})));
        let (half, all) = (of(late(1000, |record| record.outcome = Outcome::Error)), of(late(1000, |_| {})));
        assert_eq!(half.demanded_per_second, all.demanded_per_second);
        let (half, all) = (half.done_per_second.unwrap(), all.done_per_second.unwrap());
        assert!((half * 2.0 - all).abs() < 0.2, "{half} of {all}");
    }

    #[test]
    fn what_is_done_is_counted_and_timed_from_the_same_moment() {
        // 100 per second, the last of them after 3 s; the first late one should have gone at 90 ms.
        let mut rows = steady_rows(300, 10_000_000, 300);
        rows[9].issued = Some(Nanos(2_000_000_000));
        let done = of(rows).done_per_second.unwrap();
        assert!((done - 100.0).abs() < 1.0, "{done}");
    }

    #[test]
    fn what_kept_the_first_late_request_is_told() {
        assert_eq!(of(late(10, |_| {})).held_by, Some("nothing"));
        let mut rows = late(10, |record| record.held_by = HeldBy::Depth);
        rows[0].held_by = HeldBy::Input;
        rows.reverse();
        assert_eq!(of(rows.clone()).held_by, Some("input"));
        rows[9].pushed_back = true;
        assert_eq!(of(rows).held_by, Some("overlap"));
        assert_eq!(steady(10, 1000, 10).held_by, None);
    }

    #[test]
    fn one_that_keeps_up_has_no_limit() {
        let limit = replayed(10, 5000, 500);
        // 5000 requests reach √1000 s, when 316 per second are demanded.
        assert_eq!((limit.kept_up_until_ns, limit.done_per_second), (None, None));
        assert!(limit.demanded_per_second.abs_diff(311) < 8, "{limit:?}");
    }
}
