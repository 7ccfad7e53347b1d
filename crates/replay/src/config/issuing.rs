//! Options for issuing: depth, preparation ahead of time, and how the loop waits.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use iosonar_trace::Nanos;
use iosonar_trace::params::{parse_duration, parse_memory, whole_number};
use serde::Serialize;

use crate::host::isolation::IsolationPart;
use crate::pipeline::sharding::MAX_ISSUERS;

/// The highest `--depth`.
pub const MAX_DEPTH: usize = 65_536;

/// How the loop issues requests.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Issuing")]
pub struct IssueOptions {
    /// Queue depth: the maximum number of requests in flight (1 to 65536), over all targets or, with each=N, for each;
    /// pushed-back requests do not count. Not given: more if a program has more at a time
    #[arg(long, alias = "threads", value_name = "N|each=N", default_value = "512")]
    #[serde(flatten)]
    pub depth: Depth,
    /// Another limit on the requests in flight, over all targets; the smaller of it and --depth holds. 0: none
    #[arg(long, value_name = "N", default_value = "0", conflicts_with = "calibrate")]
    #[arg(value_parser = whole_number::<usize>(0..=1 << 24), allow_hyphen_values = true)]
    pub bottleneck: usize,
    /// Share the run among N issuing loops (1 to 64), each in a thread of its own: by target or, with fewer targets, by
    /// address. For more requests than one processor can issue
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "calibrate")]
    #[arg(value_parser = whole_number::<usize>(1..=MAX_ISSUERS as u64), allow_hyphen_values = true)]
    pub issuers: usize,
    /// Memory for request data
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_memory, allow_hyphen_values = true)]
    pub buffers: u64,
    /// Prepare at most this many requests ahead of their scheduled time, for each issuing loop
    #[arg(long, value_name = "N", default_value = "4096")]
    #[arg(value_parser = whole_number::<usize>(1..=1 << 24), allow_hyphen_values = true)]
    pub ahead: usize,
    /// Prepare requests this long before their scheduled time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration, allow_hyphen_values = true)]
    pub ahead_time: Nanos,
    /// Time to prepare requests before the first one is issued
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_duration, allow_hyphen_values = true)]
    pub grace: Nanos,
    /// Start the run at this time of the system clock, in seconds since 1970 UTC: 1767225600, 1767225600.25. All is prepared
    /// first; fails if that takes longer, or if the time is more than a day ahead
    #[arg(long, value_name = "TIME", conflicts_with_all = ["repeat", "calibrate"], allow_hyphen_values = true)]
    pub start_at: Option<UnixTime>,
    /// When all is prepared, wait until this file exists and has a line with the start time, as for --start-at
    #[arg(long, value_name = "FILE", conflicts_with_all = ["start_at", "repeat", "calibrate"])]
    pub start_file: Option<PathBuf>,
    /// How to wait for the scheduled time of the next request [default: spin; inline with two or three processors from
    /// 30,000 requests/s on; hybrid with one processor, or if other programs need more processors than there are. With
    /// --asap or --closed=no-think: inline with two or three processors, else hybrid]
    #[arg(long, value_enum)]
    pub wait: Option<Wait>,
    /// Before sleeping until a request completes, poll for completions this long [default: 200us if a processor is free
    /// beside the loop and other programs, else 0; 0 with --wait=sleep]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub busy_poll: Option<Nanos>,
    /// The choice of the first run of a series, which its later runs keep.
    #[arg(skip)]
    #[serde(skip)]
    pub kept_wait: Option<WaitChoice>,
    /// Isolate the replay loop from the rest of the machine in all of these ways or only in those listed, and restore
    /// the settings at the end (needs root)
    #[arg(long, value_name = "PARTS", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    #[arg(default_missing_value = "processors,workers,interrupts,priority,awake")]
    pub isolate: Vec<IsolationPart>,
}

/// How the loop of a run waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitChoice {
    /// For the scheduled time of the next request.
    pub wait: Wait,
    /// How long it polls for completions before it sleeps.
    pub busy_poll: Nanos,
}

impl IssueOptions {
    /// Reduces the depth to `--bottleneck`.
    pub fn apply_bottleneck(&mut self) {
        if self.bottleneck > 0 {
            self.depth.requests = self.depth.requests.min(self.bottleneck);
        }
    }

    /// Whether the loop has priority over other programs.
    pub fn has_priority(&self) -> bool {
        self.isolate.contains(&IsolationPart::Priority)
    }
}

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

/// The value of `--start-at`: a time of `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct UnixTime {
    /// Since 1970 UTC.
    pub since_epoch: Nanos,
}

impl FromStr for UnixTime {
    type Err = String;

    /// Parses digits, not a float: that has no nanoseconds at today's times.
    fn from_str(text: &str) -> Result<Self, String> {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let parsed = || {
            let nanos: i64 = format!("{fraction:0<9}").parse().ok()?;
            seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)
        };
        (is_number(seconds) && is_number(fraction) && fraction.len() <= 9)
            .then(parsed)
            .flatten()
            .map(|nanos| Self { since_epoch: Nanos(nanos) })
            .ok_or_else(|| "expected seconds since 1970 UTC with up to 9 decimals, as `date +%s.%N` prints them".into())
    }
}

/// How the loop waits for a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Busy-wait: precise, occupies a processor
    Spin,
    /// Sleep until shortly before the scheduled time, then spin
    Hybrid,
    /// Sleep until the scheduled time: late by the wake-up latency
    Sleep,
    /// Prepare requests and record results in the same thread meanwhile
    // Called `work` up to version 0.1.
    #[value(alias = "work")]
    Inline,
}

impl Wait {
    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_time_keeps_its_nanoseconds() {
        let parsed = |text: &str| text.parse::<UnixTime>().map(|time| time.since_epoch.0).ok();
        assert_eq!(parsed("1767225600.123456789"), Some(1_767_225_600_123_456_789));
        assert_eq!(parsed("1767225600.25"), Some(1_767_225_600_250_000_000));
        assert_eq!(parsed("1767225600"), Some(1_767_225_600_000_000_000));
        for wrong in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1.0000000001",
            "1e9",
            "now",
            "10m",
            "99999999999999999999",
            "9999999999999",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
