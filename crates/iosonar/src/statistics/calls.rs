//! Formats the closing statistics of a replay of calls.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use iosonar_files::replay::{Mismatch, Statistics};
use iosonar_files::strace::errno_name;
use iosonar_files::{DelayReason, list_unreplayable};
use iosonar_trace::run_info::{Quantiles, Within};

use super::skip_reasons::skip_reason;
use crate::console::one_line;
use crate::human;

/// Kinds of mismatches to print; the result has more.
const MISMATCHES: usize = 10;

/// Formats the statistics as text.
pub fn for_people(s: &Statistics) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        if !text.is_empty() {
            writeln!(out, "{name:<17}{}", one_line(&text)).expect("writing to a string does not fail");
        }
    };
    let list = |counts: &BTreeMap<&'static str, u64>, words: fn(&str) -> &str| {
        let each = counts.iter().map(|(name, calls)| format!("{} {}", human::count(*calls), words(name)));
        each.collect::<Vec<_>>().join(", ")
    };
    line("FAKE RESULT", s.fake.as_deref().map_or("", |why| why.trim_start_matches("FAKE RESULT: ")).to_owned());
    line("calls", format!("{}, {} issued", human::count(s.calls), human::count(s.issued)));
    line("left out", list(&s.left_out, skip_reason));
    line("rate", format!("{} calls/s", human::rate(s.calls_per_s)));
    let share = s.elapsed_s / s.original_s;
    let share = if share.is_finite() { format!("{} of ", human::percent(share)) } else { String::new() };
    line("duration", format!("{}, {share}the original's {}", human::span(s.elapsed_s), human::span(s.original_s)));
    line("data", format!("{} read, {} written", human::bytes(s.bytes_read), human::bytes(s.bytes_written)));
    line("in flight", s.max_in_flight.map_or(String::new(), |most| format!("at most {most}")));
    line("response", s.latency_us.as_ref().map(quantiles).unwrap_or_default());
    line("  original", s.original_latency_us.as_ref().map(quantiles).unwrap_or_default());
    line("delay", s.delay_not_held_back_us.as_ref().map(quantiles).unwrap_or_default());
    line("  within", s.within_not_held_back_pct.as_ref().map(within).unwrap_or_default());
    line(
        "  of the gaps",
        s.compute_time_error_pct.as_ref().map_or(String::new(), |q| {
            let below = s.compute_time_error_below_10_pct.unwrap_or_default();
            let median = q.p50.map_or("–".into(), |median| format!("{} %", human::factor(median)));
            format!("median {median}, below 10 % for {} of the calls", human::percent(below / 100.0))
        }),
    );
    let is_own = |name: &str| DelayReason::from_name(name).is_some_and(DelayReason::is_replayer);
    let (own, held) = s.delay_reasons.clone().into_iter().partition(|(name, _)| is_own(name));
    line("held back", list(&held, holder));
    line("  then issued in", s.release_to_issue_us.as_ref().map(quantiles).unwrap_or_default());
    line("replayer delayed", list(&own, holder));
    for instance in &s.instances {
        line(&format!("instance {}", instance.instance), human::span(instance.job_s));
    }
    let listings = || format!("{} in length, which is not a mismatch", human::count(s.listings_differ));
    line("listings differ", if s.listings_differ > 0 { listings() } else { String::new() });
    let lost = &s.changes_not_replayed;
    let changes = || format!("{}, which change files: {}", human::count(lost.values().sum()), list_unreplayable(lost));
    line("not replayed", if lost.is_empty() { String::new() } else { changes() });
    let differ = |calls| format!("{}: the result differs from the original's", human::counted(calls, "call"));
    line(
        "mismatches",
        match s.mismatches {
            0 if lost.is_empty() => "none".into(),
            0 => "none of the calls that were issued".into(),
            calls => differ(calls),
        },
    );
    for kind in s.mismatch_kinds.iter().take(MISMATCHES) {
        let path = kind.first_path.as_deref().unwrap_or("no path");
        line(
            "",
            format!(
                "  {} {}: {}; first call {} on {path}",
                human::count(kind.calls),
                kind.call,
                difference(kind),
                kind.first_call,
            ),
        );
    }
    if let Some(order) = &s.order {
        line(
            "order",
            match order.violations {
                0 => format!("{} kept: {} pairs of calls proven", order.policy, human::count(order.pairs)),
                more => format!("{} NOT KEPT: {} pairs of calls", order.policy, human::count(more)),
            },
        );
    }
    line("machine", s.usage.as_ref().map(|usage| usage.words()).unwrap_or_default());
    line("verdict", s.verdict.as_ref().map(|verdict| verdict.sentence.clone()).unwrap_or_default());
    out
}

/// How the result differs from the original's.
fn difference(kind: &Mismatch) -> String {
    let errno = |number: i32| errno_name(number).map_or_else(|| format!("errno {number}"), str::to_owned);
    match kind.outcome {
        "failed" => format!("failed with {}, the original succeeded", errno(kind.errno)),
        "succeeded" => format!("succeeded, the original failed with {}", errno(kind.expected_errno)),
        "other_errno" => format!("failed with {}, the original with {}", errno(kind.errno), errno(kind.expected_errno)),
        "fewer" => "moved fewer bytes than the original".into(),
        "more" => "moved more bytes than the original".into(),
        "other_result" if kind.call == "lseek" => "returned another position than the original".into(),
        _ => "returned another value than the original".into(),
    }
}

/// What held or delayed calls.
fn holder(name: &str) -> &str {
    match name {
        "predecessor" => "by a predecessor in another thread",
        "thread" => "by the call before in their thread",
        "depth" => "by --depth",
        "input" => "while it read the trace",
        "backlog" => "behind a call that it had delayed",
        name => name,
    }
}

fn quantiles(q: &Quantiles) -> String {
    let [median, in_90, in_99] = [q.p50, q.p90, q.p99].map(human::percentile);
    let note = human::too_few(&[q.p50, q.p90, q.p99], "calls");
    format!("median {median}, p90 {in_90}, p99 {in_99}, max {}{note}", human::span(q.max / 1e6))
}

fn within(w: &Within) -> String {
    let [a, b, c, d] = [w.us10, w.us25, w.us50, w.us100].map(|pct| human::percent(pct / 100.0));
    format!("10 µs {a}, 25 µs {b}, 50 µs {c}, 100 µs {d}")
}
