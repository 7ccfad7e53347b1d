//! A stop drains the loop or aborts it, and so does a target that fails.

use super::*;

#[test]
fn draining_waits_for_requests_in_flight_and_issues_no_more() {
    let bench = Bench::new(Policy::Partial, 8);
    // Request 9 waits for request 0 and would be issued after it.
    let mut load: Vec<_> = (0..3).map(|i| write(i, i as i64 * 1000, i * 8, 8)).collect();
    load.insert(2, write(9, 1500, 0, 8));
    load.extend((3..9).map(|i| write(i, i as i64 * MS, i * 8, 8)));
    let responder = stopping(&bench, Stop::drain);
    let (rows, _) = bench.run(load, responder);
    let results: Vec<_> = by_request(rows).iter().map(|row| (row.request, row.outcome, row.issued.is_some())).collect();
    use Outcome::{Ok, Unfinished};
    assert_eq!(results, [(0, Ok, true), (1, Ok, true), (2, Ok, true), (9, Unfinished, false)]);
}

#[test]
fn an_abort_leaves_requests_in_flight_unfinished() {
    let bench = Bench::new(Policy::Partial, 8);
    let responder = stopping(&bench, Stop::abort);
    let (rows, _) = bench.run((0..9).map(|i| write(i, i as i64 * 1000, i * 8, 8)).collect(), responder);
    let rows = by_request(rows);
    assert_eq!(rows.iter().map(|row| row.request).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(rows.iter().all(|r| r.outcome == Outcome::Unfinished && r.issued.is_some() && r.completed.is_none()));
}

/// Its third submission fails.
struct Failing(Mock, u32);

impl Target for Failing {
    fn stage(&mut self, io: Io<'_>) {
        self.0.stage(io);
    }
    fn submit(&mut self) -> io::Result<()> {
        self.1 += 1;
        if self.1 == 3 { Err(io::Error::from_raw_os_error(libc::ENODEV)) } else { self.0.submit() }
    }
    fn reap(&mut self) -> Option<Completion> {
        self.0.reap()
    }
}

impl Waiter for Failing {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        self.0.wait(timeout)
    }
}

#[test]
fn a_failed_submission_ends_the_loop_and_keeps_its_results() {
    let time = Time::starting_at(-MS);
    let target = Failing(Mock::with_latency(time.clone(), Nanos(100)), 0);
    let load = (0..9).map(|i| write(i, i as i64 * MS, i * 8, 8)).collect();
    let (rows, _, outcome) = Bench::new(Policy::Partial, 8).run_on(&time, target, load);
    assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::ENODEV));
    use Outcome::{Ok, Unfinished};
    assert_eq!(rows.iter().map(|row| row.outcome).collect::<Vec<_>>(), [Ok, Ok, Unfinished]);
}
