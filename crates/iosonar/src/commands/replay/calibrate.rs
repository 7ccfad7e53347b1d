//! `iosonar replay --calibrate`: measures the highest rate that this machine replays faithfully.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use iosonar_pacing::Stop;
use iosonar_pacing::fidelity::FAITHFUL_PCT;
use iosonar_pacing::host::isolation::Isolation;
use iosonar_replay::config::options::Options;
use iosonar_replay::config::plan::{Expected, Plan};
use iosonar_replay::run::calibrate::{Step, measure, search};
use serde_json::json;

use crate::console::{answer_json, out, status};
use crate::{exit, human, watch};

/// Duration of each step.
const SECONDS: f64 = 2.0;

/// Searches the rate, and prints each step.
pub fn run(options: &Options, json: bool) -> Result<ExitCode> {
    let stop = Arc::new(Stop::default());
    let plan = Plan::new(options.clone(), Expected::default());
    let _handler = watch::stop_on_signals(&stop, "requests").context("cannot handle signals")?;
    let isolation =
        if options.pacing.isolate.is_empty() { None } else { Some(Isolation::apply(&options.pacing.isolate)?) };
    for change in isolation.iter().flat_map(Isolation::changes) {
        status!("isolation: {change}");
    }
    if !json {
        out!("replayer only, no I/O: Poisson arrivals for {SECONDS} s each, --wait {}", plan.waiting.wait.name());
    }
    let mut steps: Vec<Step> = Vec::new();
    let found = search(|rate| {
        let step = measure(rate, SECONDS, &plan, isolation.as_ref(), &stop)?;
        if !json && !stop.is_requested() {
            out!("{}", line(&step));
        }
        let faithful = step.is_faithful();
        // A step that was stopped does not count.
        steps.push(step);
        Ok(faithful && !stop.is_requested())
    });
    if stop.is_requested() {
        status!("stopped: calibration incomplete");
        return Ok(ExitCode::from(exit::CUT_SHORT));
    }
    let found = found?;
    let sentence = sentence(found, &steps);
    if json {
        let result =
            json!({ "faithful_up_to": found, "sentence": sentence, "wait": plan.waiting.wait, "steps": steps });
        answer_json(&result)?;
    } else {
        out!("{sentence}");
    }
    Ok(ExitCode::SUCCESS)
}

fn line(step: &Step) -> String {
    let [in_10, in_50, in_100] = step.within_pct.map(|pct| human::percent(pct / 100.0));
    let faithful = if step.is_faithful() { "faithful" } else { "not faithful" };
    format!(
        "{:>9} requests/s  {in_10:>6} within 10 µs  {in_50:>6} 50 µs  {in_100:>6} 100 µs  {faithful}",
        human::rate(step.rate)
    )
}

/// Two significant digits: the search is no more exact.
fn rounded_down(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    (rate / unit + 1e-9).floor() * unit
}

/// The result, with the most frequent cause at the lowest rate that was not faithful.
fn sentence(found: Option<f64>, steps: &[Step]) -> String {
    let unfaithful = steps.iter().filter(|step| !step.is_faithful()).min_by(|a, b| a.rate.total_cmp(&b.rate));
    let cause = unfaithful.and_then(|step| step.verdict.late.iter().max_by_key(|late| late.requests));
    let why = cause
        .map(|late| format!("most late requests were late because {}", late.cause.phrase()))
        .map(|why| if found.is_some() { format!("; beyond that, {why}") } else { format!("; {why}") })
        .unwrap_or_default();
    match found {
        None => format!(
            "This machine is too slow or too busy for a faithful replay: even at {} requests/s it issued fewer than \
             {FAITHFUL_PCT:.0} % within 50 µs of their scheduled time{why}.",
            human::rate(steps.first().map_or(0.0, |step| step.rate))
        ),
        Some(rate) if unfaithful.is_none_or(|step| step.rate < rate) => {
            format!(
                "This machine issues {FAITHFUL_PCT:.0} % of the requests within 50 µs of their scheduled time up to at least {} requests/s.",
                human::rate(rate)
            )
        }
        Some(rate) => format!(
            "This machine issues {FAITHFUL_PCT:.0} % of the requests within 50 µs of their scheduled time up to about {} requests/s{why}.",
            human::rate(rounded_down(rate))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::rounded_down;

    #[test]
    fn rates_are_rounded_down_to_two_digits() {
        for (rate, shown) in
            [(636_679.0, 630_000.0), (1000.0, 1000.0), (1731.9, 1700.0), (99_999.0, 99_000.0), (1e6, 1e6)]
        {
            assert!((rounded_down(rate) - shown).abs() < 1e-3, "{rate}");
        }
    }
}
