//! How fast one processor stamps what is written, and checks what is read:
//! `cargo run --release -p iosonar-replay --example verify_speed`.

use std::sync::Arc;
use std::time::Instant;

use iosonar_replay::pipeline::buffers::Pool;
use iosonar_replay::verify::checker::Checker;
use iosonar_replay::verify::header::write_header;
use iosonar_replay::{CompletedIo, PreparedIo};
use iosonar_trace::{DeviceId, Flags, IoResult, Nanos, Op, Outcome, Sector, Sectors};

const RUN: u64 = 1;

fn planned(sequence_number: u64, op: Op, sector: u64, sectors: u64) -> PreparedIo {
    PreparedIo {
        sequence_number,
        request: sequence_number,
        iteration: 0,
        device: DeviceId(0),
        target: 0,
        source_sector: Sector(sector),
        sector: Sector(sector),
        sectors: Sectors(sectors),
        op,
        flags: Flags::default(),
        scheduled: Nanos(0),
        deadline: Nanos(0),
        ready: Nanos(0),
        widened: false,
        skip: None,
        buffer: None,
    }
}

fn main() {
    const BLOCKS: u64 = 1 << 20;
    for sectors in [8, 128] {
        let mut pool = Pool::new(1 << 20).expect("memory");
        let arena = Arc::clone(pool.arena());
        let bytes = sectors * 512;
        let mut buffer = Some(pool.take(bytes).expect("a buffer"));
        let mut checker = Checker::new(RUN, 1 << 30, false);
        let (mut stamping, mut entering, mut checking) = (0.0, 0.0, 0.0);
        let requests = BLOCKS * 8 / sectors;
        for i in 0..requests {
            // All over 4 GiB, each place once.
            let sector = i * 0x9e37_79b1 % requests * sectors;
            for op in [Op::Write, Op::Read] {
                let planned = planned(2 * i + 1 + u64::from(op == Op::Read), op, sector, sectors);
                let begun = Instant::now();
                if op == Op::Write {
                    write_header(arena.bytes_mut(buffer.as_mut().expect("it comes back"), bytes), RUN, &planned);
                    stamping += begun.elapsed().as_secs_f64();
                }
                let record = IoResult {
                    issued: Some(Nanos(10 * i as i64)),
                    completed: Some(Nanos(10 * i as i64 + 5)),
                    outcome: Outcome::Ok,
                    bytes_done: bytes,
                    ..planned.record()
                };
                let sequence_number = planned.sequence_number;
                let done = CompletedIo {
                    record,
                    sequence_number,
                    target: 0,
                    admitted: sequence_number,
                    reread: None,
                    buffer: buffer.take(),
                };
                let begun = Instant::now();
                checker.take(&done, &arena);
                let row = checker.decided();
                *if op == Op::Write { &mut entering } else { &mut checking } += begun.elapsed().as_secs_f64();
                assert!(row.is_some_and(|row| row.outcome == Outcome::Ok));
                buffer = done.buffer;
            }
        }
        let speed = |seconds: f64| (requests * bytes) as f64 / seconds / 1e6;
        let each = |seconds: f64| seconds / requests as f64 * 1e9;
        println!("requests of {bytes} bytes, {requests} of them:");
        for (what, seconds) in [("write_header", stamping), ("enter", entering), ("check", checking)] {
            println!("  {what}  {:8.0} MB/s  {:8.0} ns for each request", speed(seconds), each(seconds));
        }
        println!("  memory {:.1} bytes for each block of 4 KiB", checker.ledger.bytes() as f64 / BLOCKS as f64);
    }
}
