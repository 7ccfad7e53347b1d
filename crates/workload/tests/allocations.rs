//! The loop that drives filaments allocates nothing once they exist.
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::cell::Cell;

use iosonar_trace::{Nanos, Outcome, Sectors};
use iosonar_workload::program::{Layout, Placement, Program, Settings};

thread_local! {
    /// Of this thread: the test runner has another one.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: it is the system's allocator, with a counter.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Memory) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Memory) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Closed and open streams with steps, depth, thinking, order, and shared positions.
const PROGRAM: &str = r#"
name = "p"
about = "A test"

[[stream]]
name = "clients"
instances = 20
closed = true
depth = 4
think = "exponential mean=1ms"
sizes = "4k:70,64k:30"
positions = "zipf"
[[stream.step]]
op = "read"
repeat = 20
wait = false
[[stream.step]]
op = "write"
same = true
[[stream.step]]
op = "fua"
positions = "append"

[[stream]]
name = "arrivals"
arrivals = "hidden-markov rate=5k"
mix = "read=60,write=30,flush=5,discard=5"
positions = "streams count=16"
[[stream.step]]
[[stream.step]]

[[stream]]
name = "first"
arrivals = "self-similar rate=1000"
op = "read"
positions = "shuffled"
end = "100ms"

[[stream]]
name = "second"
arrivals = "bursts"
op = "write"
positions = "random-walk"
after = "first"
"#;

#[test]
fn filaments_ask_without_allocating() {
    let program = Program::parse("p.toml", PROGRAM).expect("a program");
    let mut runtime = program
        .place(&Settings::new(Layout::Together(Sectors(1 << 24))))
        .and_then(Placement::runtime)
        .expect("filaments");
    let (before, mut requests) = (ALLOCATIONS.get(), 0_u64);
    while let Some(now) = runtime.next_at().filter(|at| *at < Nanos::from_secs(0.3)) {
        while let Some(submitted) = runtime.next_due(now) {
            requests += 1;
            if let Some(ticket) = submitted.ticket {
                runtime.completed(ticket, Outcome::Ok, submitted.spec.sectors.bytes(), now);
            }
        }
    }
    let allocations = ALLOCATIONS.get() - before;
    assert_eq!((runtime.overrun(), allocations), (None, 0), "{requests} requests");
    assert!(requests > 50_000, "{requests}");
}
