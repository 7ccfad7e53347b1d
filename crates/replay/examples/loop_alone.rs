//! Throughput of the issuing loop alone: requests from memory, the null engine, completions discarded.
//!
//!     cargo run --release -p iosonar-replay --example loop_alone [REQUESTS] [DEPTH]
//!
//! Prints a JSON object with requests per second of elapsed time and per second of the loop's processor time, which other
//! work on the machine does not change. `bench/null.py` runs it.

use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Instant;

use iosonar_pacing::Stop;
use iosonar_pacing::clock::Monotonic;
use iosonar_pacing::idle::Hybrid;
use iosonar_pacing::stalls::StallMonitor;
use iosonar_replay::PreparedIo;
use iosonar_replay::engine::Target;
use iosonar_replay::engine::null::Null;
use iosonar_replay::engine::uring::BATCH;
use iosonar_replay::issuer::conflicts::{Policy, Strong};
use iosonar_replay::issuer::{IssueRules, Issuer, IssuerParts, Limits, Pace};
use iosonar_trace::{Nanos, Op, Sector, Sectors};
use rtrb::{PushError, RingBuffer};
use rustix::time::{ClockId, clock_gettime};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let requests: u64 = arguments.next().unwrap_or(10_000_000);
    let depth = arguments.next().unwrap_or(512) as usize;
    let limits =
        Limits { depth, clients: depth, pushed_back: depth, batch: BATCH, queues: 1, shared: 0, until: Nanos::MAX };
    let rules = IssueRules { pace: Pace::AsFastAsPossible, policy: Policy::Partial, strong: Strong::AnyWrite, limits };
    let (mut prepared_in, prepared_out) = RingBuffer::new(16_384);
    let (done_in, mut done_out) = RingBuffer::new(65_536);
    let (stop, in_flight) = (Stop::default(), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(move || {
            for request in 0..requests {
                let mut prepared = prepared_io(request);
                while let Err(PushError::Full(back)) = prepared_in.push(prepared) {
                    prepared = back;
                    thread::yield_now();
                }
            }
        });
        scope.spawn(move || {
            while !done_out.is_abandoned() || !done_out.is_empty() {
                // Discards all available completions at once: the completion log is not measured.
                match done_out.read_chunk(done_out.slots()) {
                    Ok(chunk) if !chunk.is_empty() => chunk.commit_all(),
                    _ => thread::sleep(std::time::Duration::from_micros(500)),
                }
            }
        });
        let looped = scope.spawn(|| {
            // As in a run: the loop is compiled for any target.
            let target: Box<dyn Target> = Box::new(Null::new(limits.slots()));
            let parts = IssuerParts {
                clock: Monotonic::starting_in(Nanos::ZERO),
                target,
                idle: Hybrid { margin: Nanos(100_000) },
                rules,
                stop: &stop,
                input: prepared_out,
                output: done_in,
                stall_monitor: StallMonitor::new(&in_flight, RingBuffer::new(64).0),
                rereader: None,
                program: None,
            };
            let (start, processor) = (Instant::now(), processor_seconds());
            let (counters, _, _, outcome) = Issuer::new(parts).run();
            outcome.expect("the null engine does not fail");
            (start.elapsed().as_secs_f64(), processor_seconds() - processor, counters)
        });
        let (elapsed, processor, counters) = looped.join().expect("the loop does not panic");
        println!(
            "{{\"requests\": {requests}, \"elapsed_s\": {elapsed:.3}, \"per_s\": {:.0}, \"loop_processor_s\": {processor:.3}, \
             \"per_processor_s\": {:.0}, \"submissions\": {}, \"completion_log_stalls\": {}}}",
            requests as f64 / elapsed,
            requests as f64 / processor,
            counters.submissions,
            counters.completion_log_stalls
        );
    });
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// A request of 4 KiB at a scattered position; 70 % are reads.
fn prepared_io(request: u64) -> PreparedIo {
    let sector = Sector(request.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 32) / 8 * 8);
    let op = if request % 10 < 7 { Op::Read } else { Op::Write };
    PreparedIo::new(request, op, sector, Sectors(8), Nanos::ZERO)
}
