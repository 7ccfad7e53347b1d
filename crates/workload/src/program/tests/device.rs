//! A device for tests; those of job files use it, too.

use std::collections::VecDeque;

use iosonar_trace::{Nanos, Outcome};

use crate::filament::SubmittedRequest;
use crate::program::{Program, Settings};

/// Runs a program on a device that serves each request in 1 ms, any number at a time, until this time: each request with
/// its completion.
pub fn on_a_device(program: &Program, settings: &Settings, until: Nanos) -> Vec<(SubmittedRequest, Nanos)> {
    const SERVICE: Nanos = Nanos(1_000_000);
    let mut runtime = program.place(settings).unwrap().runtime().unwrap();
    let (mut now, mut flying, mut all) = (Nanos::ZERO, VecDeque::new(), Vec::new());
    while !(runtime.is_done() && flying.is_empty()) {
        while let Some(submitted) = runtime.next_due(now) {
            flying.push_back((now + SERVICE, submitted));
        }
        let first = flying.front().map(|(at, _)| *at);
        // The last event of a program may submit no request.
        let Some(next) = first.into_iter().chain(runtime.next_at()).min() else { break };
        now = next;
        if now > until {
            break;
        }
        if first == Some(now) {
            let (at, submitted) = flying.pop_front().unwrap();
            all.push((submitted, at));
            if let Some(ticket) = submitted.ticket {
                runtime.completed(ticket, Outcome::Ok, submitted.spec.sectors.bytes(), now);
            }
        }
    }
    assert_eq!(runtime.overrun(), None);
    all
}
