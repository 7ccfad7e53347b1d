//! Options of both replays, of requests and of calls. Each has one name, one meaning and one place here; a replay adapts
//! their help where it issues something else, with [`clap::Command::mut_arg`].

use iosonar_trace::Nanos;
use iosonar_trace::params::{parse_positive, parse_positive_duration, whole_number};
use serde::Serialize;

use crate::depth::Depth;
use crate::host::isolation::IsolationPart;
use crate::perturb::Perturb;
use crate::start::{Start, UnixTime};
use crate::wait::Wait;

/// When and how requests or calls are issued. Serialised, they are keys of `run.options` of the footer.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub struct PacingOptions {
    /// Divide all times of the load by this: 10, 0.5
    #[arg(long, value_name = "F", default_value = "1", value_parser = parse_positive, allow_hyphen_values = true)]
    #[arg(conflicts_with = "asap", help_heading = "Time")]
    pub speedup: f64,
    /// Issue requests as fast as --depth allows, regardless of their scheduled times
    #[arg(long, help_heading = "Time")]
    pub asap: bool,
    /// Replay only requests scheduled within this time of the run: 90, 10m, 2h; requests due before its end are still issued.
    /// With --asap, issue nothing new after it
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive_duration, allow_hyphen_values = true)]
    #[arg(help_heading = "Run modes")]
    #[serde(rename = "for")]
    pub run_for: Option<Nanos>,
    /// Run the replay this many times, with numbered results (sdb.1.replay.parquet, …), to see the variance between runs. Later
    /// runs find the target as the earlier ones left it; `iosonar campaign` recreates and fills it before each run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number::<u32>(1..=10_000))]
    #[arg(allow_hyphen_values = true, help_heading = "Run modes")]
    #[serde(skip)]
    pub repeat: u32,
    /// Degrade the issue times on purpose, to see the effect: quantize=10ms delays each request to the next multiple of
    /// 10 ms, delay=1ms delays it by a random time with a mean of 1 ms (uniform from 0 to 2 ms)
    #[arg(long, value_name = "HOW=TIME", conflicts_with = "asap", help_heading = "Run modes")]
    pub perturb: Option<Perturb>,
    /// Random seed of --perturb delay, of --simulate and of a program
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole_number::<u64>(0..=u64::MAX))]
    #[arg(allow_hyphen_values = true, help_heading = "Run modes")]
    pub seed: u64,
    /// Queue depth: the maximum number of requests in flight (1 to 65536), over all targets or, with each=N, for each;
    /// pushed-back requests do not count. By default more, if a program needs more
    #[arg(long, value_name = "N|each=N", default_value = "512", help_heading = "Issuing")]
    #[serde(flatten)]
    pub depth: Depth,
    /// Start the run at this time of the system clock, in seconds since 1970 UTC: 1767225600, 1767225600.25. Everything is
    /// prepared first; fails if that takes longer, or if the time is more than a day ahead
    #[arg(long, value_name = "TIME", conflicts_with = "repeat", allow_hyphen_values = true, help_heading = "Issuing")]
    pub start_at: Option<UnixTime>,
    /// How to wait for the scheduled time of the next request [default: spin; inline with two or three processors from
    /// 30,000 requests/s on; hybrid with one processor, or if other programs need more processors than there are. With
    /// --asap or --closed=no-think: inline with two or three processors, else hybrid]
    #[arg(long, value_enum, help_heading = "Issuing")]
    pub wait: Option<Wait>,
    /// Isolate the replay loop from the rest of the machine in all of these ways or only in those listed, and restore
    /// the settings at the end (needs root)
    #[arg(long, value_name = "PARTS", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    #[arg(default_missing_value = "processors,workers,interrupts,priority,awake", help_heading = "Issuing")]
    pub isolate: Vec<IsolationPart>,
}

impl PacingOptions {
    /// Whether the loop has priority over other programs.
    pub fn has_priority(&self) -> bool {
        self.isolate.contains(&IsolationPart::Priority)
    }

    /// Why the issue times are not faithful, if they are perturbed on purpose.
    pub fn fake(&self) -> Option<String> {
        let how = self.perturb?;
        Some(format!("issue times were perturbed on purpose (--perturb {how}, --seed {})", self.seed))
    }

    /// When the run starts, at the earliest after this grace.
    pub fn start(&self, grace: Nanos) -> Start<'_> {
        Start { at: self.start_at, file: None, grace }
    }
}
