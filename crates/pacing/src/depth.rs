//! How many requests or calls may be in flight.

use std::str::FromStr;

use serde::Serialize;

/// The highest `--depth`.
pub const MAX_DEPTH: usize = 65_536;

/// The value of `--depth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Depth {
    /// Maximum number of requests in flight, without those that were pushed back.
    #[serde(rename = "depth")]
    pub requests: usize,
    /// What the depth applies to.
    #[serde(rename = "depth_for")]
    pub scope: DepthScope,
}

/// What a depth applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DepthScope {
    /// All targets together.
    All,
    /// Each target, so that a full target does not hold back requests to others.
    Each,
}

impl FromStr for Depth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scope, number) = match text.strip_prefix("each=") {
            Some(number) => (DepthScope::Each, number),
            None => (DepthScope::All, text),
        };
        let requests = number.parse().ok().filter(|requests| (1..=MAX_DEPTH).contains(requests));
        let requests =
            requests.ok_or_else(|| format!("expected a number of requests from 1 to {MAX_DEPTH}: 64, each=16"))?;
        Ok(Self { requests, scope })
    }
}
