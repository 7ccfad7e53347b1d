//! What an event of a script costs, beside the same stream in TOML: time, and allocations.
//!
//! Both streams run without a device: each request completes at once, 0.1 ms later in virtual time. They ask for the same
//! requests from the same distributions.

#![allow(unsafe_code, reason = "a global allocator that counts")]

use std::alloc::{GlobalAlloc, Layout as Bytes, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use iosonar_trace::{Nanos, Outcome, Sectors};
use iosonar_workload::filament::{Runtime, SubmittedRequest};
use iosonar_workload::program::{Layout, Placement, Program, Settings};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Bytes) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Bytes, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Bytes) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const HEAD: &str = "name = \"p\"\nabout = \"A stream\"\n[[stream]]\nname = \"s\"\n";
const CLOSED: &str = "closed = true\nop = \"read\"";
const CLOSED_SCRIPT: &str = "code = '''
local place = positions('uniform', 4096)
function start() read(place(), 4096) end
function completion() read(place(), 4096) end
'''";
const OPEN: &str = "arrivals = \"poisson rate=1000\"\nop = \"read\"";
const OPEN_SCRIPT: &str = "code = '''
local gap, place = distribution('exponential mean=1ms'), positions('uniform', 4096)
function start() wake_in(gap()) end
function timer()
  read(place(), 4096)
  wake_in(gap())
end
'''";
const TREE: &str = "code = '''
local first, count = { 0 }, { 1 }
for n = 2, 4 do first[n], count[n] = first[n - 1] + count[n - 1], count[n - 1] * 200 end
local level, node = 1, 0
function start() read(0, 8192) end
function completion()
  if level == #first then level, node = 1, 0 else level, node = level + 1, node * 200 + random(200) end
  read((first[level] + node) * 8192, 8192)
end
'''";
const LISTS: &str = "code = '''
local place, recent = positions('uniform', 4096), {}
function start() read(0, 4096) end
function completion()
  local item = { position = place(), text = 'at ' .. now() }
  recent[#recent % 100 + 1] = item
  read(item.position, 4096)
end
'''";

/// The next request of a device that serves each in 0.1 ms.
fn next(runtime: &mut Runtime, now: &mut Nanos) -> Option<SubmittedRequest> {
    loop {
        if let Some(submitted) = runtime.next_due(*now) {
            return Some(submitted);
        }
        *now = runtime.next_at()?;
    }
}

/// Nanoseconds and allocations of each request.
fn measured(keys: &str, instances: u32, requests: u32) -> (f64, f64) {
    let text = format!("{HEAD}instances = {instances}\n{keys}\n");
    let program = Program::parse("p.toml", &text).expect("a program");
    let mut runtime = program
        .place(&Settings::new(Layout::Together(Sectors(1 << 34))))
        .and_then(Placement::runtime)
        .expect("filaments");
    let (mut now, mut from, mut before) = (Nanos::ZERO, Instant::now(), 0);
    for n in 0..requests + requests / 10 {
        // The first ones fill what is filled once.
        if n == requests / 10 {
            (from, before) = (Instant::now(), ALLOCATIONS.load(Ordering::Relaxed));
        }
        let submitted = next(&mut runtime, &mut now).unwrap_or_else(|| panic!("{:?}", runtime.overrun()));
        if let Some(ticket) = submitted.ticket {
            now = now + Nanos(100_000);
            runtime.completed(ticket, Outcome::Ok, submitted.spec.sectors.bytes(), now);
        }
    }
    let (took, allocated) = (from.elapsed(), ALLOCATIONS.load(Ordering::Relaxed) - before);
    (took.as_nanos() as f64 / f64::from(requests), allocated as f64 / f64::from(requests))
}

fn main() {
    let argument = |n| std::env::args().nth(n).and_then(|text| text.parse().ok());
    let (requests, rounds) = (argument(1).unwrap_or(200_000), argument(2).unwrap_or(9));
    let ways = [
        ("closed, in TOML", CLOSED),
        ("closed, as a script", CLOSED_SCRIPT),
        ("open, in TOML", OPEN),
        ("open, as a script", OPEN_SCRIPT),
        ("script that descends a tree", TREE),
        ("script that makes tables and texts", LISTS),
    ];
    println!("| stream | instances | median ns for each request | least | allocations for each request |");
    println!("|---|---|---|---|---|");
    for instances in [1, 1000] {
        let mut all = vec![Vec::new(); ways.len()];
        for _ in 0..rounds {
            for (rows, (_, keys)) in all.iter_mut().zip(&ways) {
                rows.push(measured(keys, instances, requests));
            }
        }
        for (mut rows, (name, _)) in all.into_iter().zip(&ways) {
            rows.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (middle, least) = (rows[rows.len() / 2], rows[0]);
            println!("| {name} | {instances} | {:.0} | {:.0} | {:.2} |", middle.0, least.0, middle.1);
        }
    }
}
