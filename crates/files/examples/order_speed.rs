//! How much processor time `Order::predecessors` takes for a call, for each policy.
//!
//! ```text
//! cargo run --release --example order_speed [CALLS]
//! ```
//!
//! Sixteen threads open one of 20 000 files each, read it eight times, change its size now and then, and close it. Each call
//! touches what `state` finds for such a call.

use std::hint::black_box;

use iosonar_files::order::{Order, Policy};
use iosonar_files::{Access, Call, CallKind, DescriptionId, NameId, ObjectId, Resolved, Resource, Touch};
use iosonar_trace::Nanos;
use rustix::time::{ClockId, clock_gettime};

const THREADS: u64 = 16;
const FILES: u64 = 20_000;
/// Calls of a thread on a file: open, reads, close.
const ROUND: u64 = 10;

fn call(number: u64) -> (Call, Resolved) {
    let thread = number % THREADS;
    let turn = number / THREADS;
    let round = turn / ROUND * THREADS + thread;
    let file = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) % FILES;
    let (description, object) = (DescriptionId(round), ObjectId(1000 + file));
    let mut resolved = Resolved::default();
    let mut touch = |resource, access| resolved.touches.push(Touch { resource, access });
    let kind = match turn % ROUND {
        0 => {
            for name in [1, 2, 10 + file % 100, 1000 + file] {
                touch(Resource::Name(NameId(name)), Access::Use);
            }
            touch(Resource::Object(object), Access::Use);
            touch(Resource::Attributes(object), Access::Use);
            touch(Resource::Description(description), Access::Modify);
            resolved.makes = Some(description);
            CallKind::Openat
        }
        turn if turn == ROUND - 1 => {
            touch(Resource::Object(object), Access::Use);
            touch(Resource::Description(description), Access::Modify);
            resolved.description = Some(description);
            resolved.ends.push(description);
            CallKind::Close
        }
        turn => {
            let writes = turn == 5 && file.is_multiple_of(4);
            touch(Resource::Description(description), Access::Use);
            touch(Resource::Position(description), Access::Modify);
            touch(Resource::Size(object), if writes { Access::Modify } else { Access::Use });
            touch(Resource::Object(object), if writes { Access::Modify } else { Access::Use });
            resolved.description = Some(description);
            if writes { CallKind::Write } else { CallKind::Read }
        }
    };
    // Calls of several threads overlap.
    let mut call = Call::new(Nanos(number as i64 * 1000), thread as u32, kind);
    call.duration = Some(Nanos(500 + (number % 8) as i64 * 1000));
    (call, resolved)
}

/// Time of this thread on a processor, so that a busy machine does not change the figures.
fn processor_nanos() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn main() {
    let calls: u64 = std::env::args().nth(1).map_or(2_000_000, |calls| calls.parse().expect("a number of calls"));
    // Made beforehand in parts, so that only the order is timed.
    const PART: u64 = 100_000;
    for policy in Policy::ALL {
        for forgets in [false, true] {
            let mut order = Order::new(policy);
            let (mut nanos, mut edges) = (0, 0);
            for from in (0..calls).step_by(PART as usize) {
                let part: Vec<(Call, Resolved)> = (from..(from + PART).min(calls)).map(call).collect();
                let started = processor_nanos();
                for (number, (call, resolved)) in (from..).zip(&part) {
                    edges += black_box(order.predecessors(number, call, resolved)).len();
                    if forgets && number % 64 == 0 {
                        order.forget_before(number.saturating_sub(1000));
                    }
                }
                nanos += processor_nanos() - started;
            }
            let per_call = nanos as f64 / calls as f64;
            let memory = if forgets { "completed calls forgotten" } else { "all kept" };
            println!(
                "{policy:<13} {memory:<26} {per_call:>6.0} ns per call, {:.2} predecessors",
                edges as f64 / calls as f64
            );
        }
    }
}
