//! A window of time of `info`: the requests or calls that are due in it.

use iosonar_trace::Nanos;
use serde_json::{Value, json};

use crate::human;

/// From a time to before another; `None` where it has no end.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub from: Option<Nanos>,
    pub to: Option<Nanos>,
}

impl Window {
    /// Whether a row of this time is in it.
    pub fn contains(&self, at: Nanos) -> bool {
        self.from.is_none_or(|from| at >= from) && self.to.is_none_or(|to| at < to)
    }

    /// As JSON, in seconds.
    pub fn json(&self) -> Value {
        let seconds = |at: Option<Nanos>| at.map(Nanos::as_secs);
        json!({"from_s": seconds(self.from), "to_s": seconds(self.to)})
    }
}

/// The window of a JSON object in words; empty without one.
pub fn words(window: &Value, noun: &str) -> String {
    let of = |key: &str| window[key].as_f64().map(human::span);
    match (of("from_s"), of("to_s")) {
        (Some(from), Some(to)) => format!("only {noun}s from {from} to {to}"),
        (Some(from), None) => format!("only {noun}s from {from} on"),
        (None, Some(to)) => format!("only {noun}s before {to}"),
        (None, None) => String::new(),
    }
}
