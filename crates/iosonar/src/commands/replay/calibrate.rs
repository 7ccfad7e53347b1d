//! `iosonar replay --calibrate`: up to which rate this machine replays faithfully.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use iosonar_replay::fidelity::NEEDED_PCT;
use iosonar_replay::isolate::Isolation;
use iosonar_replay::issuer::Stop;
use iosonar_replay::options::Options;
use iosonar_replay::run::calibrate::{Step, measure, search};
use serde_json::json;

use crate::told::{answer, tell};
use crate::{exit, watch};

/// How long each rate is tried.
const SECONDS: f64 = 2.0;

/// Measures, and tells step by step.
pub fn run(options: &Options, json: bool) -> Result<ExitCode> {
    let stop = Arc::new(Stop::default());
    watch::stop_on_signals(&stop).context("signals can't be caught")?;
    let isolation = if options.isolate.is_empty() { None } else { Some(Isolation::arrange(&options.isolate)?) };
    for said in isolation.iter().flat_map(Isolation::said) {
        tell!("isolated: {said}");
    }
    if !json {
        answer!(
            "the replayer alone, without a device: Poisson arrivals for {SECONDS} s each, waiting by {}",
            wait(options)
        );
    }
    let mut steps: Vec<Step> = Vec::new();
    let found = search(|rate| {
        let step = measure(rate, SECONDS, options, isolation.as_ref(), &stop)?;
        if !json && !stop.is_ordered() {
            answer!("{}", line(&step));
        }
        let faithful = step.is_faithful();
        // What was stopped within says nothing, and ends the search soon.
        steps.push(step);
        Ok(faithful && !stop.is_ordered())
    });
    if stop.is_ordered() {
        tell!("stopped: the calibration is not complete");
        return Ok(ExitCode::from(exit::CUT_SHORT));
    }
    let found = found?;
    let sentence = sentence(found, &steps);
    if json {
        let said = json!({ "faithful_up_to": found, "sentence": sentence, "wait": options.wait(), "steps": steps });
        answer!("{}", serde_json::to_string_pretty(&said)?);
    } else {
        answer!("{sentence}");
    }
    Ok(ExitCode::SUCCESS)
}

fn wait(options: &Options) -> String {
    json!(options.wait()).as_str().unwrap_or_default().to_owned()
}

fn line(step: &Step) -> String {
    let [in_10, in_50, in_100] = step.within_pct;
    let faithful = if step.is_faithful() { "faithful" } else { "not faithful" };
    format!(
        "{:>9.0} requests/s  {in_10:6.2} % within 10 µs  {in_50:6.2} % 50 µs  {in_100:6.2} % 100 µs  {faithful}",
        step.rate
    )
}

/// Two digits are all that such a search can know.
fn rounded_down(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    (rate / unit + 1e-9).floor() * unit
}

/// What it means, with the most frequent cause at the first rate that was too much.
fn sentence(found: Option<f64>, steps: &[Step]) -> String {
    let too_much = steps.iter().filter(|step| !step.is_faithful()).min_by(|a, b| a.rate.total_cmp(&b.rate));
    let cause = too_much.and_then(|step| step.verdict.late.iter().max_by_key(|late| late.requests));
    let why = cause
        .map(|late| format!("; most of those that were late beyond it were so because {}", late.cause.phrase()))
        .unwrap_or_default();
    match found {
        None => format!(
            "This machine is too slow or too busy now for a faithful replay: even at {:.0} requests/s fewer than \
             {NEEDED_PCT:.0} % went out within 50 µs of their time{why}.",
            steps.first().map_or(0.0, |step| step.rate)
        ),
        Some(rate) if too_much.is_none_or(|step| step.rate < rate) => {
            format!(
                "Up to {rate:.0} requests/s at least, {NEEDED_PCT:.0} % go out within 50 µs of their time on this machine."
            )
        }
        Some(rate) => format!(
            "Up to about {:.0} requests/s, {NEEDED_PCT:.0} % go out within 50 µs of their time on this machine{why}.",
            rounded_down(rate)
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
