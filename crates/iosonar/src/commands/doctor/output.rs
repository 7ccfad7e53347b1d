//! What `doctor` prints.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::floor::Floor;
use super::found::{Change, Effect, Found, State, Trial};
use super::privileges::NEEDS_ROOT;
use super::trial::{Outcome, Range, Tried, Verdict};
use crate::human;

/// A change to make.
pub struct Advice<'a> {
    /// The check that found it.
    pub check: &'a str,
    pub change: &'a Change,
    /// With `--try`.
    pub tried: Option<Outcome>,
}

/// Headings of changes, which are sorted.
const FEATURES: &str = "\nMissing features\n";
const PRECISION: &str = "\nWhat to change for precise replays, the largest effect first\n";

/// All that is known about the machine.
pub struct Examined<'a> {
    pub found: &'a [(&'static str, Found)],
    pub floor: Vec<Floor>,
    pub advice: Vec<Advice<'a>>,
}

impl Examined<'_> {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = "This machine\n".to_owned();
        for (name, found) in self.found {
            _ = writeln!(text, "  {name:14} {:2}{}", mark(found.state), found.what);
        }
        text.push_str("\nTimer latency without I/O (the floor): no replay on this machine can be more precise\n");
        self.floor.iter().for_each(|floor| text.push_str(&line(floor)));
        if self.advice.is_empty() {
            text.push_str("\nNothing to change");
            return text;
        }
        let mut part = None;
        for (number, advice) in (1..).zip(&self.advice) {
            let Advice { check, change, tried } = advice;
            let is_feature = change.effect == Effect::Feature;
            if part.replace(is_feature) != Some(is_feature) {
                text.push_str(if is_feature { FEATURES } else { PRECISION });
            }
            let effect = if is_feature { String::new() } else { format!(": {}", change.effect.phrase()) };
            _ = writeln!(text, "  {number:2}. {} ({check}{effect})", change.what);
            change.command.iter().for_each(|command| _ = writeln!(text, "        {command}"));
            tried.iter().for_each(|tried| text.push_str(&result(tried)));
        }
        let untried = || self.advice.iter().filter(|advice| advice.tried.is_none()).map(|advice| &advice.change.trial);
        if untried().any(|trial| !matches!(trial, Trial::Not(_))) {
            text.push_str("\n`iosonar doctor --try` measures which of them help here, and undoes them");
        } else if untried().any(|trial| *trial == Trial::Not(NEEDS_ROOT)) {
            text.push_str(
                "\n`sudo \"$(command -v iosonar)\" doctor --try` measures which of them help here, and undoes them",
            );
        }
        text.trim_end().to_owned()
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let checks =
            self.found.iter().map(|(name, found)| json!({ "name": name, "state": found.state, "found": found.what }));
        let advice = self.advice.iter().map(|advice| {
            let Change { what, effect, command, trial } = advice.change;
            json!({
                "check": advice.check,
                "change": what,
                "effect": effect,
                "command": command,
                "can_be_tried": !matches!(trial, Trial::Not(_)),
                "tried": advice.tried,
            })
        });
        json!({
            "checks": checks.collect::<Vec<_>>(),
            "floor": self.floor,
            "changes": advice.collect::<Vec<_>>(),
        })
    }
}

fn mark(state: State) -> &'static str {
    match state {
        State::Good => "",
        State::Improvable => "!",
        State::Missing => "✗",
        State::Unknown => "?",
    }
}

fn line(floor: &Floor) -> String {
    let within = floor.within_50_us_pct.map_or_else(|| "–".to_owned(), |pct| human::percent(pct / 100.0));
    format!(
        "  --wait {:6} p50 {}, p99 {}, longest {}; {within} within 50 µs\n",
        floor.wait.name(),
        human::percentile(floor.p50_us),
        human::percentile(floor.p99_us),
        human::percentile(floor.max_us),
    )
}

fn result(outcome: &Outcome) -> String {
    match outcome {
        Outcome::NotTried(why) => format!("        not tried: {why}\n"),
        Outcome::Measured(all) => all.iter().map(|tried| format!("        tried: {}\n", effect(tried))).collect(),
    }
}

fn effect(tried: &Tried) -> String {
    let range = |values: &[f64]| {
        let Range { low, high } = Range::of(values);
        format!("{} to {}", human::percentile(Some(low)), human::percentile(Some(high)))
    };
    let verdict = match tried.verdict {
        Verdict::Helps => "it helps",
        Verdict::Harms => "it does harm",
        Verdict::NoDifference => "no clear difference",
        Verdict::TooNoisy => "too noisy to judge: stop other programs, and try again",
    };
    format!(
        "--wait {}: {verdict}; p99 {} before, {} after",
        tried.wait.name(),
        range(&tried.before_us),
        range(&tried.after_us)
    )
}
