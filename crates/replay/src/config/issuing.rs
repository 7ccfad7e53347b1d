//! How much is in flight and prepared ahead, and how the loop waits.

use std::str::FromStr;

use clap::ValueEnum;
use clap::builder::TypedValueParser;
use iosonar_trace::Nanos;
use iosonar_trace::params::parse_duration;
use serde::Serialize;

use crate::host::isolation::Part;

/// The highest depth.
pub const MOST_DEPTH: usize = 65_536;

/// What the loop keeps to while it issues.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Issuing")]
pub struct IssueOptions {
    /// Queue depth: the maximum number of requests in flight (1 to 65536), over all targets or, with each=N, for each;
    /// pushed-back requests do not count
    #[arg(long, alias = "threads", value_name = "N|each=N", default_value = "512")]
    #[serde(flatten)]
    pub depth: Depth,
    /// Memory for request data, in MiB
    #[arg(long, value_name = "MIB", default_value = "256")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20).map(|mib| mib << 20))]
    pub buffers: u64,
    /// Prepare at most this many requests ahead of their scheduled time (the manual's bottleneck)
    #[arg(long, alias = "bottleneck", value_name = "N", default_value = "4096")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 24).map(|n| n as usize))]
    pub ahead: usize,
    /// Prepare requests this long before their scheduled time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration, allow_hyphen_values = true)]
    pub ahead_time: Nanos,
    /// Time to open and prepare everything before the first request
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_duration, allow_hyphen_values = true)]
    pub grace: Nanos,
    /// How to wait for the scheduled time of the next request [default: spin with four or more processors, hybrid there
    /// with --asap or --closed=no-think; with two or three processors inline for those two and from 30,000 requests/s on,
    /// else spin; hybrid with one processor, or if other programs need more processors than there are]
    #[arg(long, value_enum)]
    pub wait: Option<Wait>,
    /// Isolate the replay loop from the rest of the machine, in all these ways or only in those named, and undo that at the
    /// end (needs root)
    #[arg(long, value_name = "PARTS", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    #[arg(default_missing_value = "processors,workers,interrupts,priority,awake")]
    pub isolate: Vec<Part>,
}

impl IssueOptions {
    /// Whether the loop has priority over other programs.
    pub fn has_priority(&self) -> bool {
        self.isolate.contains(&Part::Priority)
    }
}

/// How many requests may be in flight, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Depth {
    /// Maximum number of requests in flight, without those that were pushed back.
    #[serde(rename = "depth")]
    pub requests: usize,
    /// Whose depth that is.
    #[serde(rename = "depth_for")]
    pub of: DepthFor,
}

/// Whose depth it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DepthFor {
    /// All targets together.
    All,
    /// Each target by itself, so that a full one holds no other.
    Each,
}

impl FromStr for Depth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (of, number) = match text.strip_prefix("each=") {
            Some(number) => (DepthFor::Each, number),
            None => (DepthFor::All, text),
        };
        let requests = number.parse().ok().filter(|requests| (1..=MOST_DEPTH).contains(requests));
        let requests =
            requests.ok_or_else(|| format!("give a number of requests from 1 to {MOST_DEPTH}: 64, each=16"))?;
        Ok(Self { requests, of })
    }
}

/// What the loop does while it waits for a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Busy-wait: exact, occupies a processor
    Spin,
    /// Sleep until shortly before the scheduled time, then spin
    Hybrid,
    /// Sleep until the scheduled time: late by the wake-up latency
    Sleep,
    /// Prepare requests and record results in the same thread meanwhile
    // `work` until version 0.1.
    #[value(alias = "work")]
    Inline,
}

impl Wait {
    /// As the command line calls it.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
