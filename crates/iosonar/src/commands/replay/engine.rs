//! How the engine works: how much is in flight and made ahead, and how it waits.

use anyhow::Result;
use clap::ValueEnum;
use iosonar_replay::isolate::Part;
use iosonar_replay::options::{Options, Wait};

#[derive(clap::Args)]
#[command(next_help_heading = "Engine")]
pub struct Engine {
    /// The most requests in flight (1 to 65536)
    #[arg(long, alias = "threads", value_name = "N", default_value_t = 512)]
    depth: usize,
    /// The most memory for the data of requests, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    buffers: u64,
    /// How many requests are made ready ahead of their time
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    ahead: u32,
    /// How long to wait for deadlines: spin is exact and takes a processor; hybrid sleeps in between
    /// [default: spin; hybrid with --asap, or where only one processor may be used]
    #[arg(long, value_enum)]
    wait: Option<WaitName>,
    /// Arrange the machine for the loop, all of it or the parts named, and undo that at the end: a processor of
    /// its own, without kernel workers and interrupts, before others, and idle processors kept awake (needs root)
    #[arg(long, value_name = "PARTS", num_args = 0..=1, require_equals = true, value_delimiter = ',',
          default_missing_value = "processors,workers,interrupts,priority,awake")]
    isolate: Vec<PartName>,
}

#[derive(Clone, Copy, ValueEnum)]
enum WaitName {
    /// Exact, takes a processor
    Spin,
    /// Sleeps until shortly before each deadline
    Hybrid,
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
}

impl Engine {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        options.depth = self.depth;
        options.buffers = self.buffers << 20;
        options.ahead_requests = self.ahead as usize;
        options.wait = self.wait.map(|wait| match wait {
            WaitName::Spin => Wait::Spin,
            WaitName::Hybrid => Wait::Hybrid,
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
        }
    }
}
