//! Proves from the result of a replay that it kept its order. Shares no code with `order` and `replay`; `state` says what
//! calls touch.

mod join;
mod report;
mod rules;
mod sweep;
#[cfg(test)]
mod tests;
mod times;

use std::time::Instant;

use iosonar_trace::{Nanos, Result};

use crate::order::Policy;
use crate::{Call, CallReader, Resolved, ResultReader};
use join::Join;
use rules::Checker;

pub use report::{NAMED, Report, Rule, Violation};

/// What a run was to keep.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The order that the run was to keep.
    pub policy: Policy,
    /// Calls of the trace that begin outside are not replayed: from, and up to but without.
    pub window: (Option<Nanos>, Option<Nanos>),
    /// The number of concurrent instances; 0 counts as 1.
    pub instances: u32,
}

/// Reads a trace and the result of its replay, and checks that each dependent call was issued after its predecessors.
/// `resolve` says what each call of the trace touches, in turn: `State::next`.
pub fn check(
    calls: &mut dyn CallReader,
    results: &mut dyn ResultReader,
    options: &Options,
    mut resolve: impl FnMut(&Call) -> Resolved,
) -> Result<Report> {
    let started = Instant::now();
    let mut join = Join::new(results);
    let mut checkers: Vec<Checker> =
        (0..options.instances.max(1)).map(|instance| Checker::new(options.policy, instance)).collect();
    let mut report = Report { policy: options.policy, ..Report::default() };
    let (from, to) = options.window;
    let mut number = 0;
    while let Some(call) = calls.next()? {
        let resolved = resolve(&call);
        let is_inside = from.is_none_or(|from| call.begin >= from) && to.is_none_or(|to| call.begin < to);
        if is_inside {
            for (instance, checker) in (0..).zip(&mut checkers) {
                let awaited = resolved.skip.is_none();
                let times = join.take(instance, number, awaited)?;
                report.missing += u64::from(awaited && times.is_none());
                checker.check(number, &call, &resolved, times.flatten());
            }
        }
        number += 1;
    }
    for checker in checkers {
        let found = checker.found;
        report.calls += found.calls;
        report.pairs += found.pairs;
        report.violations += found.violations;
        report.first_violations.extend(found.first);
        // The same for all instances.
        report.ordered = found.ordered;
        report.reorderable = found.reorderable;
    }
    report.first_violations.truncate(NAMED);
    if report.ordered > 1 {
        report.reorderable_share = report.reorderable as f64 / (report.ordered - 1) as f64;
    }
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}
