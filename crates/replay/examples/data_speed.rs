//! How fast the data of writes is made, on one processor: `cargo run --release -p iosonar-replay --example data_speed`.
//!
//! Prints a row of a table for each kind of data: requests of 4 and of 64 KiB, into memory that stays in the processor's
//! cache and into as much as a replay takes by default. The best of five rounds of 1 GiB.

use std::time::Instant;

use iosonar_replay::pipeline::payload::{Asked, Content};
use iosonar_trace::Sector;

const ROUND_BYTES: usize = 1 << 30;
const CACHED: usize = 256 << 10;
const DEFAULT_BUFFERS: usize = 256 << 20;

fn main() {
    println!("| data | 4 KiB, cached | 64 KiB, cached | 4 KiB, 256 MiB | 64 KiB, 256 MiB |");
    println!("|---|---|---|---|---|");
    let with = |kind: &str, compressible: u8, dedupe: u8| Asked {
        kind: kind.parse().expect("a kind"),
        compressible: (compressible > 0).then(|| compressible.to_string().parse().expect("a share")),
        dedupe: (dedupe > 0).then(|| dedupe.to_string().parse().expect("a share")),
        fill_random: None,
    };
    for (name, asked) in [
        ("random", with("random", 0, 0)),
        ("`--compressible 50`", with("random", 50, 0)),
        ("`--dedupe 50`", with("random", 0, 50)),
        ("`--compressible 50 --dedupe 50`", with("random", 50, 50)),
        ("`--data pattern=deadbeef`", with("pattern=deadbeef", 0, 0)),
        ("`--data zero`", with("zero", 0, 0)),
    ] {
        let mut content = Content::new(&asked.spec().expect("they go together"), 1);
        let mut row = format!("| {name} |");
        for memory in [CACHED, DEFAULT_BUFFERS] {
            let mut bytes = vec![1; memory];
            for request in [4096, 65536] {
                row += &format!(" {:.1} GB/s |", speed(&mut content, &mut bytes, request));
            }
        }
        println!("{row}");
    }
}

fn speed(content: &mut Content, memory: &mut [u8], request: usize) -> f64 {
    let round = |content: &mut Content, memory: &mut [u8]| {
        let begun = Instant::now();
        for turn in 0..ROUND_BYTES / memory.len() {
            for (i, bytes) in memory.chunks_mut(request).enumerate() {
                content.fill(Sector(((turn + i) * request / 512) as u64), bytes);
            }
            std::hint::black_box(&*memory);
        }
        ROUND_BYTES as f64 / begun.elapsed().as_secs_f64() / 1e9
    };
    (0..5).map(|_| round(content, memory)).fold(0.0, f64::max)
}
