//! The closing statistics of a replay, for people.

use std::fmt::Write;
use std::process::ExitCode;

use iosonar_replay::fidelity::Moment;
use iosonar_replay::run::Finished;
use iosonar_replay::statistics::{DeviceStatistics, Quantiles, Statistics, Within};
use iosonar_replay::verify::report::{Last, Verification};

use crate::told::tell;
use crate::{exit, human};

/// Worst moments that are printed; more are in the result.
const WORST: usize = 3;
/// Findings that are printed; more are in the result.
const FINDINGS_TOLD: usize = 10;

/// One line for each thing that a person asks first.
pub fn for_people(s: &Statistics) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        if !text.is_empty() {
            writeln!(out, "{name:<17}{text}").expect("a string takes everything");
        }
    };
    line("FAKE RESULT", s.fake.as_deref().map_or("", |why| why.trim_start_matches("FAKE RESULT: ")).to_owned());
    line("requests", format!("{} ({} reads, {} writes, {} others)", s.requests, s.reads, s.writes, s.others));
    let rate = format!("{:.0} requests/s, {}/s", s.iops, human::bytes(s.bytes_per_s as u64));
    line("completed", format!("{} in {}: {rate}", s.completed, human::span(s.elapsed_s)));
    line(
        "not as asked",
        list(&[
            (s.errors, "errors"),
            (s.short, "short"),
            (s.unfinished, "unfinished"),
            (s.verify_errors, "verify errors"),
            (s.zero_reads, "reads of zeros"),
            (s.bad_lines, "bad lines"),
        ]),
    );
    line(
        "left out",
        list(&[
            (s.dropped, "dropped"),
            (s.skipped.beyond_end, "across the target's end"),
            (s.skipped.unaligned, "unaligned"),
            (s.skipped.too_large, "too large"),
            (s.skipped.unsupported, "unsupported"),
            (s.skipped.excluded, "excluded"),
        ]),
    );
    line(
        "overlaps",
        list(&[(s.pushed_back, "pushed back"), (s.ordered_waits, "ordered waits"), (s.widened, "widened to blocks")]),
    );
    line("most at once", format!("{} in flight, {} pushed back", s.max_in_flight, s.max_pushed_back));
    let has_positions = !(s.fake.is_some() && s.wrap_factor < 1e-6);
    line("wrap-around", if has_positions { format!("factor {:.3}", s.wrap_factor) } else { String::new() });
    line("latency", s.latency_us.as_ref().map(quantiles).unwrap_or_default());
    line("  from deadline", s.latency_intended_us.as_ref().map(quantiles).unwrap_or_default());
    line("issue error", s.issue_error_us.as_ref().map(quantiles).unwrap_or_default());
    line("  within", s.within_pct.as_ref().map(within).unwrap_or_default());
    line("  free to go", s.issue_error_free_us.as_ref().map(quantiles).unwrap_or_default());
    line("  within", s.within_free_pct.as_ref().map(within).unwrap_or_default());
    line("  drift", s.drift_us_per_min.map(|d| format!("{d:+.3} µs/min")).unwrap_or_default());
    if s.devices.len() > 1 {
        for device in &s.devices {
            line(&format!("  {}", name_of(device)), device_line(device));
        }
    }
    if let Some(verify) = &s.verify {
        line("verified", verified(verify));
        line("  at the end", verify.last.as_ref().map(last_pass).unwrap_or_default());
    }
    if let Some(verdict) = &s.verdict {
        line("verdict", verdict.sentence.clone());
        let worst: Vec<_> = verdict.worst.iter().take(WORST).map(moment).collect();
        line("  worst moments", worst.join("; "));
    }
    line("cut short", if s.complete { String::new() } else { "yes: this run is not complete".into() });
    out
}

/// What people call a device of the load.
fn name_of(d: &DeviceStatistics) -> String {
    if d.source.is_empty() { format!("device {}", d.device) } else { d.source.clone() }
}

fn device_line(d: &DeviceStatistics) -> String {
    let Some(target) = &d.target else { return format!("{} requests, left out: no --target names it", d.requests) };
    let counts =
        list(&[(d.requests, "requests"), (d.left_out, "left out"), (d.errors + d.short + d.unfinished, "failed")]);
    let rate = format!("{:.0} requests/s, {}/s", d.iops, human::bytes(d.bytes_per_s as u64));
    let latency = d.latency_us.as_ref().map(|q| format!("; {}", quantiles(q))).unwrap_or_default();
    format!("on {target}: {counts}; {rate}{latency}")
}

/// 0 only if every request of all runs was done in full.
pub fn exit_code(all: &[Statistics]) -> ExitCode {
    let failed = |s: &Statistics| {
        s.errors + s.short + s.unfinished + s.verify_errors > 0
            || s.verify.as_ref().is_some_and(Verification::has_failed)
    };
    if all.iter().any(|s| !s.complete) {
        ExitCode::from(exit::CUT_SHORT)
    } else if all.iter().any(failed) {
        ExitCode::from(exit::REQUESTS_FAILED)
    } else if all.iter().any(|s| s.verify.as_ref().is_some_and(|verify| !verify.is_whole())) {
        ExitCode::from(exit::CUT_SHORT)
    } else {
        ExitCode::SUCCESS
    }
}

/// What verification found goes to standard error, where nobody overlooks it.
pub fn tell_findings(finished: &Finished) {
    for finding in finished.findings.iter().take(FINDINGS_TOLD) {
        tell!("VERIFY ERROR: {}", finding.on(&finished.targets));
    }
    if finished.findings.len() > FINDINGS_TOLD {
        let more = finished.findings.len() - FINDINGS_TOLD;
        tell!("VERIFY ERROR: and more; the next {more} are in the result's footer, under `run.findings`");
    }
}

fn verified(v: &Verification) -> String {
    let all = list(&[
        (v.read_sectors, "sectors of reads"),
        (v.reread_sectors, "sectors right after their write"),
        (v.undecided_sectors, "sectors undecided for overlaps"),
    ]);
    let all = if all.is_empty() { "no sector of a read had been written in this run".to_owned() } else { all };
    let known = if v.known_pct < 100.0 { format!(" (of {} % of the blocks)", v.known_pct) } else { String::new() };
    format!("{all}{known}: {} mismatches", v.mismatches)
}

fn last_pass(last: &Last) -> String {
    let share = if last.sectors == 0 { 100.0 } else { 100.0 * last.checked as f64 / last.sectors as f64 };
    format!(
        "checked {} / {} blocks ({share:.1}%), found {} errors, {} mismatches{}",
        last.checked,
        last.sectors,
        last.errors,
        last.mismatches,
        if last.complete { "" } else { "; not complete" }
    )
}

fn list(counts: &[(u64, &str)]) -> String {
    let some: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    some.join(", ")
}

fn moment(m: &Moment) -> String {
    format!("{} late at {:.3} s ({})", human::span(m.late_us / 1e6), m.at_s, m.cause.name())
}

fn quantiles(q: &Quantiles) -> String {
    let us = |x: f64| human::span(x / 1e6);
    format!("median {}, 99 % {}, 99.9 % {}, most {}", us(q.p50), us(q.p99), us(q.p999), us(q.max))
}

fn within(w: &Within) -> String {
    format!("{:.2} % within 10 µs, {:.2} % 25 µs, {:.2} % 50 µs, {:.2} % 100 µs", w.us10, w.us25, w.us50, w.us100)
}
