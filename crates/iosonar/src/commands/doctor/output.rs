//! What `doctor` prints.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::floor::Floor;
use super::found::{Change, Found, State, Trial};
use super::trial::{Outcome, Tried};
use crate::human;

/// A change to make.
pub struct Advice<'a> {
    /// The check that found it.
    pub check: &'a str,
    pub change: &'a Change,
    /// With `--try`.
    pub tried: Option<Outcome>,
}

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
        text.push_str("\nHow late a waiting loop is without I/O: no replay here is better\n");
        self.floor.iter().for_each(|floor| text.push_str(&line(floor)));
        if self.advice.is_empty() {
            text.push_str("\nNothing to change");
            return text;
        }
        text.push_str("\nWhat to change, the largest effect first\n");
        for (number, advice) in (1..).zip(&self.advice) {
            let Advice { check, change, tried } = advice;
            _ = writeln!(text, "  {number:2}. {} ({check}: {})", change.what, change.effect.phrase());
            change.command.iter().for_each(|command| _ = writeln!(text, "        {command}"));
            tried.iter().for_each(|tried| text.push_str(&result(tried)));
        }
        let can_try = |advice: &Advice<'_>| advice.tried.is_none() && !matches!(advice.change.trial, Trial::Not(_));
        if self.advice.iter().any(can_try) {
            text.push_str("\n`iosonar doctor --try` measures which of them help here, and undoes them");
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
        let low = values.iter().copied().min_by(f64::total_cmp);
        let high = values.iter().copied().max_by(f64::total_cmp);
        format!("{} to {}", human::percentile(low), human::percentile(high))
    };
    let verdict = match tried.saved_us {
        Some(saved) if saved > 0.0 => "it helps",
        Some(_) => "it does harm",
        None => "no clear difference",
    };
    format!(
        "--wait {}: {verdict}; p99 {} before, {} after",
        tried.wait.name(),
        range(&tried.before_us),
        range(&tried.after_us)
    )
}
