//! Speed of generating the data of writes, on one processor: `cargo run --release -p iosonar-replay --example data_speed`.
//!
//! Prints a table row for each kind of data: requests of 4 and 64 KiB, in memory that fits into the processor's
//! cache and in the default amount of a replay. The best of five rounds of 1 GiB.

use std::time::Instant;

use iosonar_pacing::payload::Payload;
use iosonar_replay::Options;
use iosonar_trace::Sector;

const ROUND_BYTES: usize = 1 << 30;
const CACHED: usize = 256 << 10;
const DEFAULT_BUFFERS: usize = 256 << 20;

fn main() {
    println!("| data | 4 KiB, cached | 64 KiB, cached | 4 KiB, 256 MiB | 64 KiB, 256 MiB |");
    println!("|---|---|---|---|---|");
    for words in [
        "--data random",
        "--compressible 50",
        "--dedupe 50",
        "--compressible 50 --dedupe 50",
        "--data pattern=deadbeef",
        "--data zero",
    ] {
        let line = format!("load --engine null --output run {words}");
        let options = Options::parse(line.split(' ')).expect("valid options");
        let mut payload = Payload::new(&options.data, 1);
        let mut row = format!("| `{words}` |");
        for memory in [CACHED, DEFAULT_BUFFERS] {
            let mut bytes = vec![1; memory];
            for request in [4096, 65536] {
                row += &format!(" {:.1} GB/s |", speed(&mut payload, &mut bytes, request));
            }
        }
        println!("{row}");
    }
}

fn speed(payload: &mut Payload, memory: &mut [u8], request: usize) -> f64 {
    let round = |payload: &mut Payload, memory: &mut [u8]| {
        let start = Instant::now();
        for pass in 0..ROUND_BYTES / memory.len() {
            for (i, bytes) in memory.chunks_mut(request).enumerate() {
                payload.fill(Sector(((pass + i) * request / 512) as u64), bytes);
            }
            std::hint::black_box(&*memory);
        }
        ROUND_BYTES as f64 / start.elapsed().as_secs_f64() / 1e9
    };
    (0..5).map(|_| round(payload, memory)).fold(0.0, f64::max)
}
