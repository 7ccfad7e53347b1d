//! Prints the closing statistics of a replay.

pub mod calls;
pub mod skip_reasons;

use std::fmt::Write;
use std::process::ExitCode;

use iosonar_replay::run::Finished;
use iosonar_trace::run_info::{DeviceStatistics, FinalPassCounts, Moment, Quantiles, Statistics, Verification, Within};

use crate::console::{one_line, status};
use crate::{exit, human};

/// Worst moments to print; the result has more.
const WORST: usize = 3;
/// Findings to print; the result has more.
const FINDINGS_SHOWN: usize = 10;

/// Formats the statistics as text.
pub fn for_people(s: &Statistics) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        if !text.is_empty() {
            writeln!(out, "{:<17}{}", one_line(name), one_line(&text)).expect("writing to a string does not fail");
        }
    };
    line("FAKE RESULT", s.fake.as_deref().map_or("", |why| why.trim_start_matches("FAKE RESULT: ")).to_owned());
    line("requests", format!("{}: {}", human::count(s.requests), operations(s.reads, s.writes, s.others)));
    let rate = format!("{} requests/s, {}/s", human::rate(s.iops), human::bytes(s.bytes_per_s as u64));
    line("completed", format!("{} in {}: {rate}", human::count(s.completed), human::span(s.elapsed_s)));
    line(
        "failed",
        list(&[
            (s.errors, "errors"),
            (s.short, "short"),
            (s.unfinished, "unfinished"),
            (s.verify_errors, "errors of verification"),
        ]),
    );
    line(
        "noticed",
        list(&[(s.zero_reads.unwrap_or(0), "reads of zeros"), (s.bad_lines.unwrap_or(0), "lines left out as bad")]),
    );
    line(
        "left out",
        list(&[
            (s.dropped, "dropped"),
            (s.skipped.beyond_end, "beyond the target's end"),
            (s.skipped.unaligned, "unaligned"),
            (s.skipped.too_large, "too large"),
            (s.skipped.unsupported, "unsupported"),
            (s.skipped.excluded, "excluded"),
        ]),
    );
    line(
        "overlaps",
        list(&[
            (s.pushed_back, "pushed back"),
            (s.ordered_waits.unwrap_or(0), "waits for their order"),
            (s.widened, "widened to blocks"),
        ]),
    );
    let pushed_back = s.max_pushed_back.map(|most| format!(", {} pushed back", human::count(u64::from(most))));
    let in_flight = human::count(u64::from(s.max_in_flight));
    line("peak", format!("{in_flight} in flight{}", pushed_back.unwrap_or_default()));
    // Up to 1, all positions are on the target.
    let has_wrapped = s.wrap_factor > 1.0;
    line("wrap-around", if has_wrapped { format!("factor {}", human::factor(s.wrap_factor)) } else { String::new() });
    line("latency", s.latency_us.as_ref().map(quantiles).unwrap_or_default());
    for (op, quantile) in slower_ops(s) {
        line(&format!("  {}", op.replace('_', " ")), quantiles(quantile));
    }
    line("  from scheduled", s.latency_from_scheduled_us.as_ref().map(quantiles).unwrap_or_default());
    line("delay", s.delay_us.as_ref().map(quantiles).unwrap_or_default());
    line("  within", s.within_pct.as_ref().map(within).unwrap_or_default());
    line("  not held back", s.delay_not_held_back_us.as_ref().map(quantiles).unwrap_or_default());
    line("  within", s.within_not_held_back_pct.as_ref().map(within).unwrap_or_default());
    line("  drift", s.drift_us_per_min.map(drift).unwrap_or_default());
    if s.devices.len() > 1 {
        for device in &s.devices {
            line(&format!("  {}", name_of(device)), device_line(device));
        }
    }
    if let Some(verify) = &s.verify {
        line("verified", verified(verify));
        line("  at the end", verify.last.as_ref().map(last_pass).unwrap_or_default());
    }
    line("machine", s.usage.as_ref().map(|usage| usage.words()).unwrap_or_default());
    if let Some(verdict) = &s.verdict {
        line("verdict", verdict.sentence.clone());
        let worst: Vec<_> = verdict.worst.iter().take(WORST).map(moment).collect();
        line("  worst moments", worst.join("; "));
    }
    line("cut short", if s.complete { String::new() } else { "yes: the run is incomplete".into() });
    out
}

/// The remedies of a run that was not faithful, a line for each.
pub fn remedies(s: &Statistics) -> String {
    let mut out = String::new();
    for (remedy, number) in s.verdict.iter().flat_map(|verdict| &verdict.remedies).zip(1..) {
        let name = if number == 1 { "  what to try" } else { "" };
        let text = format!("{number}. {} (costs: {})", remedy.what, remedy.costs);
        writeln!(out, "{name:<17}{}", one_line(&text)).expect("writing to a string does not fail");
    }
    out
}

/// The latency of each operation, if flushes, discards or zeroing take longer than reads and writes: then the percentiles of
/// all requests are theirs.
fn slower_ops(s: &Statistics) -> impl Iterator<Item = (&String, &Quantiles)> {
    let mean = |is_data| {
        let of = s.latency_by_op_us.iter().filter(move |(op, _)| matches!(op.as_str(), "read" | "write") == is_data);
        of.map(|(_, quantiles)| quantiles.mean).fold(0.0, f64::max)
    };
    let is_shown = mean(false) > mean(true) && mean(true) > 0.0;
    s.latency_by_op_us.iter().filter(move |_| is_shown)
}

/// The name of a device of the load.
fn name_of(d: &DeviceStatistics) -> String {
    if d.source.is_empty() { format!("device {}", d.device) } else { d.source.clone() }
}

fn device_line(d: &DeviceStatistics) -> String {
    let Some(target) = &d.target else {
        return format!("{}, left out: no --target", human::counted(d.requests, "request"));
    };
    let counts =
        list(&[(d.requests, "requests"), (d.left_out, "left out"), (d.errors + d.short + d.unfinished, "failed")]);
    let rate = format!("{} requests/s, {}/s", human::rate(d.iops), human::bytes(d.bytes_per_s as u64));
    let latency = d.latency_us.as_ref().map(|q| format!("; {}", quantiles(q))).unwrap_or_default();
    format!("on {target}: {counts}; {rate}{latency}")
}

/// 0 only if all requests of all runs succeeded in full.
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

/// Prints the findings of verification on standard error.
pub fn print_findings(finished: &Finished) {
    for finding in finished.findings.iter().take(FINDINGS_SHOWN) {
        status!("VERIFY ERROR: {}", finding.describe(&finished.targets));
    }
    if finished.findings.len() > FINDINGS_SHOWN {
        let more = finished.findings.len() - FINDINGS_SHOWN;
        status!("VERIFY ERROR: {more} more in the result's footer, under `run.findings`");
    }
}

fn verified(v: &Verification) -> String {
    let all = list(&[
        (v.read_sectors, "sectors of reads"),
        (v.reread_sectors, "sectors read back after their write"),
        (v.undecided_sectors, "sectors undecided because of overlaps"),
    ]);
    let all = if all.is_empty() { "no read of a sector written in this run".to_owned() } else { all };
    let known = human::percent(v.known_pct / 100.0);
    let known = if v.known_pct < 100.0 { format!(" (of {known} of the blocks)") } else { String::new() };
    format!("{all}{known}: {} mismatches", human::count(v.mismatches))
}

fn last_pass(last: &FinalPassCounts) -> String {
    let share = if last.sectors == 0 { human::percent(1.0) } else { human::percent_of(last.checked, last.sectors) };
    format!(
        "checked {} of {} blocks ({share}), found {} errors, {} mismatches{}",
        human::count(last.checked),
        human::count(last.sectors),
        human::count(last.errors),
        human::count(last.mismatches),
        if last.complete { "" } else { "; incomplete" }
    )
}

fn list(counts: &[(u64, &str)]) -> String {
    // Begins with the noun, which agrees with the number.
    let some = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| human::agreed(*n, what));
    some.collect::<Vec<_>>().join(", ")
}

/// `70 reads, 29 writes, 1 other`.
fn operations(reads: u64, writes: u64, others: u64) -> String {
    let all = [(reads, "read"), (writes, "write"), (others, "other")];
    all.map(|(count, what)| human::counted(count, what)).join(", ")
}

/// Growth of the delay per minute.
fn drift(us_per_min: f64) -> String {
    let sign = if us_per_min > 0.0 { "+" } else { "" };
    format!("{sign}{}/min", human::span(us_per_min / 1e6))
}

fn moment(m: &Moment) -> String {
    format!("{} late at {} ({})", human::span(m.late_us / 1e6), human::at_second(m.at_s), m.cause.name())
}

fn quantiles(q: &Quantiles) -> String {
    let [median, in_99, in_999] = [q.p50, q.p99, q.p999].map(human::percentile);
    let note = human::too_few(&[q.p50, q.p99, q.p999], "requests");
    format!("median {median}, p99 {in_99}, p99.9 {in_999}, max {}{note}", human::span(q.max / 1e6))
}

fn within(w: &Within) -> String {
    let [in_10, in_25, in_50, in_100] = [w.us10, w.us25, w.us50, w.us100].map(|pct| human::percent(pct / 100.0));
    format!("{in_10} within 10 µs, {in_25} 25 µs, {in_50} 50 µs, {in_100} 100 µs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_agree_with_their_number() {
        assert_eq!(
            list(&[(1, "reads of zeros"), (0, "short"), (1, "waits for their order")]),
            "1 read of zeros, 1 wait for its order"
        );
        assert_eq!(list(&[(2, "reads of zeros"), (1, "short")]), "2 reads of zeros, 1 short");
    }
}
