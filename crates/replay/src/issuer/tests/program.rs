//! Programs in the loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use iosonar_device::geometry::Geometry;
use iosonar_workload::filament::{Event, Filament, FilamentContext, Overrun, RequestSpec, Runtime};
use iosonar_workload::program::{Layout, Program, Settings};

use super::*;
use crate::address::device_map::DeviceMap;
use crate::address::router::Routes;
use crate::address::router::Rules;
use crate::pipeline::program::{EarlyEnd, ProgramInput};

fn ask(sector: u64, op: Op) -> RequestSpec {
    RequestSpec { op, flags: Flags::NONE, device: DeviceId(0), sector: Sector(sector), sectors: Sectors(8), tag: 0 }
}

/// Thinks after each completion.
struct Closed {
    think: i64,
    left: u32,
}

impl Filament for Closed {
    fn wake(&mut self, event: Event, context: &mut FilamentContext<'_>) {
        match event {
            Event::Completed(_) if self.think > 0 => {
                context.timer(context.now() + Nanos(self.think));
            }
            _ if self.left > 0 => {
                self.left -= 1;
                context.issue_and_wait(ask(u64::from(self.left) * 8, Op::Read));
            }
            _ => {}
        }
    }
}

/// Asks each millisecond.
struct Open {
    left: u32,
}

impl Filament for Open {
    fn wake(&mut self, event: Event, context: &mut FilamentContext<'_>) {
        if let Event::Timer(_) = event {
            context.issue(ask(80_000 + u64::from(self.left) * 8, Op::Write));
        }
        if self.left > 0 {
            self.left -= 1;
            context.timer(context.now() + Nanos(MS));
        }
    }
}

fn routes(sectors: u64) -> Routes {
    let mut map = DeviceMap::default();
    assert!(map.insert(Some(DeviceId(0)), 0));
    Routes::new(vec![Geometry::new(sectors * 512, 512)], map, Rules::default(), vec![sectors])
}

/// Runs a program beside a load on a target that takes 4 ms for each request.
fn run(runtime: Runtime, load: Vec<PreparedIo>, depth: usize) -> (Vec<IoResult>, LoopCounters) {
    let bench = Bench::new(Policy::Allow, depth);
    let time = Time::starting_at(-MS);
    let target = Mock::with_latency(time.clone(), Nanos(4 * MS));
    let (output, mut done) = RingBuffer::new(10_000);
    let (mut producer, input) = RingBuffer::new(load.len().max(16));
    load.into_iter().for_each(|request| producer.push(request).unwrap());
    drop(producer);
    let mut issuer = bench.issuer_with_input(&time, target, input, output);
    issuer.program = Some(Box::new(ProgramInput::new(runtime, routes(100_000), None, Nanos(1000 * MS))));
    let (counters, _, _, outcome) = issuer.run();
    outcome.unwrap();
    (std::iter::from_fn(|| done.pop().ok()).map(|done| done.record).collect(), counters)
}

#[test]
fn closed_filaments_issue_a_think_time_after_completions() {
    for (think, period) in [(0, 4), (3 * MS, 7)] {
        let mut runtime = Runtime::default();
        runtime.add(Box::new(Closed { think, left: 50 }), 5, Nanos::ZERO);
        let (rows, _) = run(runtime, Vec::new(), 8);
        assert_eq!(rows.len(), 50);
        for (n, row) in rows.iter().enumerate() {
            let n = n as u64;
            assert_eq!((row.request, row.stream, row.outcome), (n, Some(5), Outcome::Ok));
            // A request after a think time was asked for by a timer.
            assert_eq!(row.cause, n.checked_sub(1).filter(|_| think == 0));
            let late = row.scheduled - Nanos(n as i64 * period * MS);
            assert!((0..20_000).contains(&late.0), "{row:?}: the completions' own times add up");
            assert!((0..100).contains(&row.delay().unwrap().0), "{row:?}: from cause to issue");
        }
    }
}

#[test]
fn closed_filaments_do_not_shift_open_ones_or_a_load() {
    let mut runtime = Runtime::default();
    runtime.add(Box::new(Open { left: 100 }), 0, Nanos::ZERO);
    runtime.add(Box::new(Closed { think: 0, left: 25 }), 1, Nanos::ZERO);
    let load = (0..50).map(|n| read(n, n as i64 * 2 * MS, 40_000 + n * 8, 8)).collect();
    let (mut rows, _) = run(runtime, load, 32);
    assert_eq!(rows.len(), 175);
    assert!(rows.iter().all(|row| row.delay().unwrap().0 < 200), "{rows:?}");
    rows.retain(|row| row.stream == Some(0));
    for (n, row) in rows.iter().enumerate() {
        assert_eq!((row.scheduled, row.cause, row.op), (Nanos((n as i64 + 1) * MS), None, Op::Write));
    }
}

#[test]
fn only_an_open_program_gets_growing_delays_in_an_overload() {
    let mut runtime = Runtime::default();
    runtime.add(Box::new(Open { left: 200 }), 0, Nanos::ZERO);
    // One at a time: 4 ms of service for each millisecond.
    let (rows, _) = run(runtime, Vec::new(), 1);
    for (n, row) in rows.iter().enumerate() {
        assert_eq!(row.delay().unwrap().0 / MS, n as i64 * 3, "{row:?}");
    }
    let mut runtime = Runtime::default();
    for _ in 0..4 {
        runtime.add(Box::new(Closed { think: 0, left: 50 }), 0, Nanos::ZERO);
    }
    let (rows, _) = run(runtime, Vec::new(), 4);
    assert!(rows.iter().all(|row| row.delay().unwrap().0 < 100), "{rows:?}");
    let last = rows.iter().map(|row| row.completed.unwrap()).max().unwrap();
    let (throughput, expected) = (200.0 / last.as_secs(), 4.0 / 0.004);
    assert!((throughput / expected - 1.0).abs() < 0.01, "depth / response time: {throughput}");
}

#[test]
fn parts_of_a_program_add_up_to_what_one_loop_does() {
    let text = "name = \"p\"\nabout = \"A test\"\n[[stream]]\nname = \"a\"\nop = \"read\"\nclosed = true\ninstances = 5\ndepth = 4\n\
                requests = 40\n[[stream]]\nname = \"b\"\nop = \"write\"\nclosed = true\ninstances = 2\nthink = \"constant value=3ms\"\n\
                requests = 30\n[[stream]]\nname = \"c\"\nop = \"read\"\narrivals = \"uniform rate=500\"\nrequests = 20\n";
    let ran = |parts| {
        let placed = Program::parse("p.toml", text).unwrap().place(&Settings::new(Layout::Together(Sectors(100_000))));
        let (mut rows, mut counters) = (Vec::new(), LoopCounters::default());
        let (all, _) = placed.unwrap().parts(parts).unwrap();
        assert_eq!(all.len(), parts);
        for part in all {
            let (of_part, counted) = run(part.runtime, Vec::new(), part.closed_at_once as usize + 2);
            rows.extend(of_part.into_iter().map(|row| {
                // The clock goes on with each reading, so times differ by microseconds.
                let at = |time: Nanos| (time.0 + MS / 2) / MS;
                (row.stream, at(row.scheduled), row.sector, row.op as u8, at(row.completed.unwrap()))
            }));
            counters.add(&counted);
        }
        rows.sort_unstable();
        (rows, (counters.max_in_flight, counters.dropped, counters.completion_log_stalls, counters.early_end))
    };
    let one = ran(1);
    assert_eq!(one.0.len(), 5 * 40 + 2 * 30 + 20);
    assert!([2, 3, 8].into_iter().all(|parts| ran(parts) == one));
}

/// Counts completions of requests that cannot be issued.
struct Beyond(Arc<AtomicU64>);

impl Filament for Beyond {
    fn wake(&mut self, event: Event, context: &mut FilamentContext<'_>) {
        match event {
            Event::Completed(completed) => {
                assert_eq!((completed.outcome, completed.bytes), (Outcome::Excluded, 0));
                self.0.fetch_add(1, Ordering::Relaxed);
            }
            _ => context.issue_and_wait(RequestSpec { device: DeviceId(7), ..ask(0, Op::Read) }),
        }
    }
}

#[test]
fn a_request_that_is_left_out_completes_as_well() {
    let seen = Arc::default();
    let mut runtime = Runtime::default();
    runtime.add(Box::new(Beyond(Arc::clone(&seen))), 0, Nanos(MS));
    let (rows, _) = run(runtime, Vec::new(), 1);
    assert_eq!((rows.len(), rows[0].issued, seen.load(Ordering::Relaxed)), (1, None, 1));
}

struct Wrong;

impl Filament for Wrong {
    fn wake(&mut self, _: Event, context: &mut FilamentContext<'_>) {
        (0..9).for_each(|n| context.issue(ask(n * 8, Op::Read)));
    }
}

#[test]
fn a_program_that_asks_for_too_much_ends_and_says_so() {
    let mut runtime = Runtime::default();
    let id = runtime.add(Box::new(Wrong), 0, Nanos(MS));
    let (rows, counters) = run(runtime, Vec::new(), 1);
    assert_eq!((rows.len(), counters.early_end), (8, Some(EarlyEnd::Overrun(Overrun::Events(id)))));
}

/// Asks again at each completion, for a device that has no target.
struct Stubborn;

impl Filament for Stubborn {
    fn wake(&mut self, _: Event, context: &mut FilamentContext<'_>) {
        context.issue_and_wait(RequestSpec { device: DeviceId(7), ..ask(0, Op::Read) });
    }
}

#[test]
fn a_program_whose_requests_are_all_left_out_ends_and_says_so() {
    let mut runtime = Runtime::default();
    runtime.add(Box::new(Stubborn), 0, Nanos(MS));
    let (_, counters) = run(runtime, Vec::new(), 1);
    assert_eq!(counters.early_end, Some(EarlyEnd::LeftOut(Outcome::Excluded)));
}

#[test]
fn a_program_asks_for_nothing_after_its_time() {
    for filament in
        [Box::new(Open { left: u32::MAX }) as Box<dyn Filament>, Box::new(Closed { think: 0, left: u32::MAX })]
    {
        let mut runtime = Runtime::default();
        runtime.add(filament, 0, Nanos::ZERO);
        let (rows, counters) = run(runtime, Vec::new(), 32);
        let (first, last) = (&rows[0], &rows[rows.len() - 1]);
        assert!(
            first.scheduled < Nanos(2 * MS)
                && last.scheduled < Nanos(1000 * MS)
                && last.scheduled > Nanos(1000 * MS - 5 * MS)
        );
        assert!(rows.iter().all(|row| row.outcome == Outcome::Ok), "all are completed");
        assert_eq!(counters.early_end, None);
    }
}
