//! Cost of finding overlaps, on one processor: `cargo run --release -p iosonar-replay --example conflicts_speed`.
//!
//! Prints a table row for each policy and kind of load: nanoseconds per request (admission, release if it waits, and
//! completion), and the share of a processor at a million requests per second. The number of requests in flight is
//! constant, and they complete in random order. The best of three rounds.

use std::time::Instant;

use iosonar_pacing::depth::MAX_DEPTH;
use iosonar_replay::issuer::conflicts::{Admission, Policy, Range, Strong, Tracker};

const REQUESTS: usize = 300_000;
/// 4 TiB.
const SECTORS: u64 = 1 << 33;

/// A load for the conflict tracker.
struct Load {
    name: &'static str,
    /// A request from a random number.
    request: fn(u64) -> Range,
}

const LOADS: [Load; 4] = [
    Load { name: "4 KiB, uniform over 4 TiB", request: |random| range((random % SECTORS) & !7, 8, random) },
    // Half of the requests overlap another one.
    Load { name: "4 KiB, uniform over 512 MiB", request: |random| range((random % (1 << 20)) & !7, 8, random) },
    Load {
        name: "4 KiB to 1 MiB, unaligned",
        request: |random| range(random % SECTORS, 8 << ((random >> 59) % 9), random),
    },
    Load {
        name: "1 of 1000 is a discard of 1 GiB, the rest 4 KiB",
        request: |random| match (random >> 40) % 1000 {
            0 => Range { modifies: true, ..range(random % SECTORS, 1 << 21, random) },
            _ => range((random % SECTORS) & !7, 8, random),
        },
    },
];

/// 70 % read.
fn range(sector: u64, sectors: u64, random: u64) -> Range {
    Range { target: 0, sector, sectors, modifies: (random >> 33) % 10 >= 7 }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// The result of a round.
struct Round {
    ns: f64,
    /// Share of requests with a conflict.
    conflicts: f64,
}

fn round(policy: Policy, depth: usize, load: &Load) -> Round {
    let slots = depth * 2;
    let mut tracker = Tracker::new(policy, Strong::AnyWrite, slots);
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut free: Vec<u32> = (0..slots as u32).rev().collect();
    let mut in_flight = Vec::with_capacity(slots);
    let (mut done, mut conflicts, mut waiting) = (0, 0, 0);
    let mut start = Instant::now();
    let mut held: Option<Range> = None;
    loop {
        while in_flight.len() < depth && waiting < depth {
            let is_first_try = held.is_none();
            let range = held.take().unwrap_or_else(|| (load.request)(random.next()));
            let slot = *free.last().expect("twice the depth");
            let admission = tracker.admit(slot, range);
            conflicts += u64::from(is_first_try && admission == Admission::Conflict);
            match (admission, policy) {
                (Admission::Issue, _) => {
                    free.pop();
                    in_flight.push(slot);
                }
                (Admission::Conflict, Policy::Partial) => {
                    free.pop();
                    waiting += 1;
                }
                (Admission::Conflict, Policy::Ordering) => {
                    held = Some(range);
                    break;
                }
                (Admission::Conflict, _) => {}
            }
        }
        // Measured from when the full depth is in flight.
        if done == depth {
            (start, conflicts) = (Instant::now(), 0);
        }
        if done == depth + REQUESTS {
            let ns = start.elapsed().as_nanos() as f64 / REQUESTS as f64;
            return Round { ns, conflicts: conflicts as f64 / REQUESTS as f64 };
        }
        let slot = in_flight.swap_remove(random.next() as usize % in_flight.len());
        tracker.finish(slot);
        free.push(slot);
        done += 1;
        while let Some(slot) = tracker.release() {
            waiting -= 1;
            in_flight.push(slot);
        }
    }
}

fn main() {
    println!(
        "| load | in flight | `--conflicts` | overlap | ns for each request | of a processor at 10^6 requests/s |"
    );
    println!("|---|---|---|---|---|---|");
    for load in &LOADS {
        for depth in [512, MAX_DEPTH] {
            for (name, policy) in [
                ("allow", Policy::Allow),
                ("drop", Policy::Drop),
                ("partial", Policy::Partial),
                ("ordering", Policy::Ordering),
            ] {
                let rounds: Vec<Round> = (0..3).map(|_| round(policy, depth, load)).collect();
                let best = rounds.iter().map(|round| round.ns).fold(f64::INFINITY, f64::min);
                let (share, overlap) = (best / 10.0, rounds[0].conflicts * 100.0);
                println!("| {} | {depth} | {name} | {overlap:.2} % | {best:.0} | {share:.1} % |", load.name);
            }
        }
    }
}
