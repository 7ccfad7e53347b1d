//! How the engine works: how much is in flight and made ahead, and how it waits.

use std::str::FromStr;

use clap::ValueEnum;
use iosonar_replay::config::options::{DepthFor, MOST_DEPTH, Options, Wait};
use iosonar_replay::host::isolation::Part;
use iosonar_trace::Nanos;

use crate::duration::nanos;

#[derive(clap::Args)]
#[command(next_help_heading = "Engine")]
pub struct Engine {
    /// Queue depth: the most requests in flight (1 to 65536) over all targets; each=N for each target
    #[arg(long, alias = "threads", value_name = "N|each=N", default_value = "512")]
    depth: Depth,
    /// Memory for request data, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    buffers: u64,
    /// Prepare at most this many requests ahead of their scheduled time (the manual's bottleneck)
    #[arg(long, alias = "bottleneck", value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    ahead: u32,
    /// Prepare requests this long before their scheduled time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = nanos, allow_hyphen_values = true)]
    ahead_time: Nanos,
    /// Time to open and prepare everything before the first request
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = nanos, allow_hyphen_values = true)]
    grace: Nanos,
    /// How to wait for the scheduled time of the next request [default: spin with four or more processors, hybrid there
    /// with --asap or --closed=no-think; with two or three processors work for those two and from 30,000 requests/s on, else
    /// spin; hybrid with one processor, or if other programs need more processors than there are]
    #[arg(long, value_enum)]
    wait: Option<WaitName>,
    /// Isolate the replay loop from the rest of the machine, in all these ways or only in those named, and undo that at the
    /// end (needs root)
    #[arg(long, value_name = "PARTS", num_args = 0..=1, require_equals = true, value_delimiter = ',',
          default_missing_value = "processors,workers,interrupts,priority,awake")]
    isolate: Vec<PartName>,
}

#[derive(Clone, Copy)]
struct Depth {
    of: DepthFor,
    requests: usize,
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
        Ok(Self { of, requests })
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum WaitName {
    /// Busy-wait: exact, occupies a processor
    Spin,
    /// Sleep until shortly before the scheduled time, then spin
    Hybrid,
    /// Sleep until the scheduled time: late by the wake-up latency
    Sleep,
    /// Prepare requests and record results in the same thread meanwhile
    Work,
}

#[derive(Clone, Copy, ValueEnum)]
enum PartName {
    /// A dedicated processor for the loop
    Processors,
    /// No kernel workers (workqueues) on it
    Workers,
    /// No interrupts on it
    Interrupts,
    /// Nice -20 and minimal timer slack
    Priority,
    /// No idle states (C-states): idle processors poll
    Awake,
    /// In a virtual machine, idle processors poll for 200 µs before they halt (only if named)
    Polling,
}

impl Engine {
    pub fn apply(self, options: &mut Options) -> anyhow::Result<()> {
        (options.depth, options.depth_for) = (self.depth.requests, self.depth.of);
        options.buffers = self.buffers << 20;
        options.ahead_requests = self.ahead as usize;
        (options.ahead, options.grace) = (self.ahead_time, self.grace);
        options.wait = self.wait.map(|wait| match wait {
            WaitName::Spin => Wait::Spin,
            WaitName::Hybrid => Wait::Hybrid,
            WaitName::Sleep => Wait::Sleep,
            WaitName::Work => Wait::Work,
        });
        options.isolate = self.isolate.iter().map(|part| part.meant()).collect();
        Ok(())
    }
}

impl PartName {
    fn meant(self) -> Part {
        match self {
            Self::Processors => Part::Processors,
            Self::Workers => Part::Workers,
            Self::Interrupts => Part::Interrupts,
            Self::Priority => Part::Priority,
            Self::Awake => Part::Awake,
            Self::Polling => Part::Polling,
        }
    }
}
