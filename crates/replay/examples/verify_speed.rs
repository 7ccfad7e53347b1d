//! Speed of writing headers into sectors, and of checking sectors, on one processor:
//! `cargo run --release -p iosonar-replay --example verify_speed`.

use std::sync::Arc;
use std::time::Instant;

use iosonar_pacing::buffers::Pool;
use iosonar_replay::verify::checker::Checker;
use iosonar_replay::verify::header::write_header;
use iosonar_replay::{CompletedIo, PreparedIo};
use iosonar_trace::{IoResult, Nanos, Op, Outcome, Sector, Sectors};

const RUN: u64 = 1;

fn main() {
    const BLOCKS: u64 = 1 << 20;
    for sectors in [8, 128] {
        let mut pool = Pool::new(1 << 20).expect("memory");
        let arena = Arc::clone(pool.arena());
        let bytes = sectors * 512;
        let mut buffer = Some(pool.take(bytes).expect("a buffer"));
        let mut checker = Checker::new(RUN, 1 << 30, false);
        let (mut writing_headers, mut applying, mut checking) = (0.0, 0.0, 0.0);
        let requests = BLOCKS * 8 / sectors;
        for i in 0..requests {
            // Over the whole of 4 GiB, each position once.
            let sector = i * 0x9e37_79b1 % requests * sectors;
            for op in [Op::Write, Op::Read] {
                let request = 2 * i + u64::from(op == Op::Read);
                let prepared = PreparedIo::new(request, op, Sector(sector), Sectors(sectors), Nanos::ZERO);
                let start = Instant::now();
                if op == Op::Write {
                    write_header(
                        arena.bytes_mut(buffer.as_mut().expect("returned by the last request"), bytes),
                        RUN,
                        &prepared,
                    );
                    writing_headers += start.elapsed().as_secs_f64();
                }
                let record = IoResult {
                    issued: Some(Nanos(10 * i as i64)),
                    completed: Some(Nanos(10 * i as i64 + 5)),
                    outcome: Outcome::Ok,
                    bytes_done: bytes,
                    ..prepared.record()
                };
                let sequence_number = prepared.sequence_number;
                let done = CompletedIo {
                    record,
                    sequence_number,
                    issuer: 0,
                    is_late_by_load: false,
                    target: 0,
                    admitted: sequence_number,
                    reread: None,
                    buffer: buffer.take(),
                };
                let start = Instant::now();
                checker.add(&done, &arena);
                let row = checker.decided();
                *if op == Op::Write { &mut applying } else { &mut checking } += start.elapsed().as_secs_f64();
                assert!(row.is_some_and(|row| row.outcome == Outcome::Ok));
                buffer = done.buffer;
            }
        }
        let speed = |seconds: f64| (requests * bytes) as f64 / seconds / 1e6;
        let each = |seconds: f64| seconds / requests as f64 * 1e9;
        println!("requests of {bytes} bytes, {requests} of them:");
        for (what, seconds) in [("write_header", writing_headers), ("apply", applying), ("check", checking)] {
            println!("  {what}  {:8.0} MB/s  {:8.0} ns per request", speed(seconds), each(seconds));
        }
        println!("  memory {:.1} bytes per 4 KiB block", checker.expected_state.bytes() as f64 / BLOCKS as f64);
    }
}
