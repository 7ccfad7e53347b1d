//! What it costs to find overlaps, on one processor: `cargo run --release -p iosonar-replay --example conflicts_speed`.
//!
//! Prints a row of a table for each policy and kind of load: nanoseconds for each request (admitted, released if it had
//! to wait, and taken back), and the share of a processor that this is at a million requests a second. As many requests are in
//! flight all the while as a replay takes at most, and come back in no order. The best of three rounds.

use std::time::Instant;

use iosonar_replay::config::issuing::MOST_DEPTH;
use iosonar_replay::issuer::conflicts::{Admission, Policy, Range, Strong, Tracker};

const REQUESTS: usize = 300_000;
/// 4 TiB.
const SECTORS: u64 = 1 << 33;

/// A load, as far as overlaps go.
struct Load {
    name: &'static str,
    /// A request from a random number.
    request: fn(u64) -> Range,
}

const LOADS: [Load; 4] = [
    Load { name: "4 KiB, uniform over 4 TiB", request: |random| range((random % SECTORS) & !7, 8, random) },
    // Each meets another one as often as not.
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

/// What one round came to.
struct Round {
    ns: f64,
    /// Share of the requests that met another one.
    conflicts: f64,
}

fn round(policy: Policy, depth: usize, load: &Load) -> Round {
    let slots = depth * 2;
    let mut tracker = Tracker::new(policy, Strong::AnyWrite, slots);
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut free: Vec<u32> = (0..slots as u32).rev().collect();
    let mut flying = Vec::with_capacity(slots);
    let (mut done, mut conflicts, mut waiting) = (0, 0, 0);
    let mut begun = Instant::now();
    let mut held: Option<Range> = None;
    loop {
        while flying.len() < depth && waiting < depth {
            let is_new = held.is_none();
            let range = held.take().unwrap_or_else(|| (load.request)(random.next()));
            let slot = *free.last().expect("twice the depth");
            let admission = tracker.admit(slot, range);
            conflicts += u64::from(is_new && admission == Admission::Conflict);
            match (admission, policy) {
                (Admission::Issue, _) => {
                    free.pop();
                    flying.push(slot);
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
        // Counted from when all are in flight.
        if done == depth {
            (begun, conflicts) = (Instant::now(), 0);
        }
        if done == depth + REQUESTS {
            let ns = begun.elapsed().as_nanos() as f64 / REQUESTS as f64;
            return Round { ns, conflicts: conflicts as f64 / REQUESTS as f64 };
        }
        let slot = flying.swap_remove(random.next() as usize % flying.len());
        tracker.finish(slot);
        free.push(slot);
        done += 1;
        while let Some(slot) = tracker.release() {
            waiting -= 1;
            flying.push(slot);
        }
    }
}

fn main() {
    println!(
        "| load | in flight | `--conflicts` | overlap | ns for each request | of a processor at 10^6 requests/s |"
    );
    println!("|---|---|---|---|---|---|");
    for load in &LOADS {
        for depth in [512, MOST_DEPTH] {
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
