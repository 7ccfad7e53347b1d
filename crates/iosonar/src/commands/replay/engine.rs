//! How the engine works: how much is in flight and made ahead, and how it waits.

use std::str::FromStr;

use clap::ValueEnum;
use iosonar_replay::isolate::Part;
use iosonar_replay::options::{DepthFor, Options, Wait};

use super::time::seconds;

#[derive(clap::Args)]
#[command(next_help_heading = "Engine")]
pub struct Engine {
    /// The most requests in flight (1 to 65536) over all targets; each=N gives every target a depth of its own
    #[arg(long, alias = "threads", value_name = "N|each=N", default_value = "512")]
    depth: Depth,
    /// The most memory for the data of requests, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    buffers: u64,
    /// How many requests are made ready ahead of their time and handed to the loop (the manual's bottleneck)
    #[arg(long, alias = "bottleneck", value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    ahead: u32,
    /// How long before their time requests are made ready, in seconds
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    ahead_time: f64,
    /// How long before the first request everything is opened, filled and made ready, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.2)]
    grace: f64,
    /// How to wait: spin is exact and takes a processor; hybrid sleeps in between; sleep costs the least; work has the
    /// loop make requests ready and record them itself meanwhile, without other threads
    /// [default: spin; on two or three processors work from 30,000 requests/s on, and with --asap or --closed=no-think,
    /// which have hybrid on more; hybrid where only one processor may be used]
    #[arg(long, value_enum)]
    wait: Option<WaitName>,
    /// Arrange the machine for the loop, all of it or the parts named, and undo that at the end: a processor of
    /// its own, without kernel workers and interrupts, before others, and idle processors kept awake (needs root)
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
        let requests = number.parse().map_err(|_| format!("{number:?} is no number of requests"))?;
        Ok(Self { of, requests })
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum WaitName {
    /// Exact, takes a processor
    Spin,
    /// Sleeps until shortly before each deadline, then spins
    Hybrid,
    /// Sleeps until the deadline: late by the time that waking takes
    Sleep,
    Work,
}

#[derive(Clone, Copy, ValueEnum)]
enum PartName {
    /// A processor of its own for the loop
    Processors,
    /// Kernel workers keep off it
    Workers,
    /// Interrupts keep off it
    Interrupts,
    /// Nice -20 and exact timers
    Priority,
    /// Idle processors poll instead of sleeping
    Awake,
    /// Those of a virtual machine poll for 200 µs before they sleep (only if named)
    Polling,
}

impl Engine {
    pub fn apply(self, options: &mut Options) -> anyhow::Result<()> {
        (options.depth, options.depth_for) = (self.depth.requests, self.depth.of);
        options.buffers = self.buffers << 20;
        options.ahead_requests = self.ahead as usize;
        options.ahead = seconds("ahead-time", self.ahead_time)?;
        options.grace = seconds("grace", self.grace)?;
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
