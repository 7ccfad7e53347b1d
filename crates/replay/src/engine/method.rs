//! Options for the I/O: the engine or simulation, and whether the result is fake.

use clap::ValueEnum;
use clap::builder::ArgPredicate;
use iosonar_pacing::{Error, Result};
use iosonar_trace::params::whole_number;
use serde::Serialize;

use crate::engine::simulate::simulation::Simulation;

/// Starts the sentence that marks every picture of a fake result.
pub const FAKE: &str = "FAKE RESULT: ";

/// The engine and its settings.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "I/O engine")]
pub struct Method {
    /// The I/O engine [default: io_uring; threads, with a warning, where io_uring is unavailable]
    #[arg(long, value_enum)]
    #[arg(default_value_if("fake_io", ArgPredicate::IsPresent, "null"))]
    #[arg(default_value_if("dry_run", ArgPredicate::IsPresent, "dry-run"))]
    #[arg(default_value_if("simulate", ArgPredicate::IsPresent, "simulate"))]
    pub engine: Option<Engine>,
    /// Maximum number of threads of --engine threads [default: --depth, at most 512]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = whole_number::<usize>(1..=65_536), allow_hyphen_values = true)]
    pub workers: Option<usize>,
    /// Options of io_uring.
    #[command(flatten)]
    #[serde(flatten)]
    pub ring: RingOptions,
    /// Open targets with O_SYNC: writes complete when durable
    #[arg(long)]
    pub o_sync: bool,
    /// Go through the page cache; marks the result as FAKE
    #[arg(long)]
    pub no_o_direct: bool,
    /// The same as --engine dry-run
    #[arg(long, conflicts_with_all = ["engine", "simulate"])]
    #[serde(skip)]
    dry_run: bool,
    /// The same as --engine null
    #[arg(long, conflicts_with_all = ["engine", "dry_run", "simulate"])]
    #[serde(skip)]
    fake_io: bool,
    /// Simulate the device: a description FILE.toml; a preset (hdd, sata-ssd, nvme, raid5-bbu, thin-san, cloud-volume,
    /// hdd-behind-cache); or service times constant=200us, exponential=200us, lognormal=200us:0.5 (median, sigma) or
    /// run=FILE.replay.parquet (from an earlier run), where servers=8 limits parallelism: 'constant=200us servers=8'. Marks
    /// the result as FAKE
    #[arg(long, value_name = "MODEL")]
    pub simulate: Option<Simulation>,
    /// Run the simulation in virtual time, as fast as the processor allows: an hour of load in seconds, with the same result
    /// each time
    #[arg(long, requires = "simulate")]
    #[arg(conflicts_with_all = ["wait", "isolate", "start_at", "start_file"])]
    pub virtual_time: bool,
}

/// Special modes of io_uring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args, Serialize)]
pub struct RingOptions {
    /// Poll for completions instead of waiting for interrupts; needs a device with poll queues
    #[arg(long)]
    pub poll: bool,
    /// Let a kernel thread take submissions (IORING_SETUP_SQPOLL), without system calls; it occupies a processor
    #[arg(long)]
    pub sqpoll: bool,
}

/// What does or simulates the I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// A single io_uring: the most precise
    #[value(name = "io_uring", alias = "uring")]
    IoUring,
    /// A thread pool with blocking system calls
    Threads,
    /// No I/O, no data, no target: measures the replayer's own overhead; marks the result as FAKE
    Null,
    /// Everything but the I/O: opens and checks the target, builds data; marks the result as FAKE
    DryRun,
    /// A simulated device, without I/O: needs --simulate
    Simulate,
}

impl Engine {
    /// Its name in the footer.
    pub fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Threads => "threads",
            Self::Null => "null",
            Self::DryRun => "dry_run",
            Self::Simulate => "simulate",
        }
    }
}

impl Method {
    /// Whether requests go to a device or its page cache.
    pub fn does_io(&self) -> bool {
        matches!(self.engine, None | Some(Engine::IoUring | Engine::Threads))
    }

    /// The size of the simulated device in bytes, if one is described.
    pub fn simulated_size(&self) -> Option<u64> {
        self.simulate.as_ref().and_then(Simulation::size)
    }

    /// Whether io_uring does the I/O, if the kernel has it.
    pub fn is_ring(&self) -> bool {
        matches!(self.engine, None | Some(Engine::IoUring))
    }

    /// Whether the target is opened and checked, requests are mapped to it and their data is built.
    pub fn has_device(&self) -> bool {
        self.does_io() || self.engine == Some(Engine::DryRun)
    }

    /// Why the result says nothing about a device, as a sentence; `None` for a real one.
    pub fn fake(&self) -> Option<String> {
        let why = match (self.engine, &self.simulate) {
            (Some(Engine::Simulate), Some(simulation)) => {
                let time = if self.virtual_time { " in virtual time" } else { "" };
                format!("no I/O was done, latencies are simulated{time} (--simulate '{simulation}')")
            }
            (Some(Engine::DryRun), _) => "everything but the I/O was done (--engine dry-run)".into(),
            (Some(Engine::Null), _) => "no I/O was done, no data moved (--engine null)".into(),
            _ if self.no_o_direct => "I/O went through the page cache (--no-o-direct)".into(),
            _ => return None,
        };
        Some(format!("{FAKE}{why}"))
    }

    /// Refuses contradictory options.
    pub fn check(&self) -> Result<()> {
        let conflicts = [
            (
                self.engine == Some(Engine::Simulate) && self.simulate.is_none(),
                "--engine simulate needs latencies: add, for example, --simulate constant=200us",
            ),
            (
                self.simulate.is_some() && self.engine != Some(Engine::Simulate),
                "--simulate needs --engine simulate: omit --engine",
            ),
            (
                // clap drops the demand for --simulate if an option is given that excludes it.
                self.virtual_time && self.simulate.is_none(),
                "--virtual-time needs a simulated device: add, for example, --simulate constant=200us",
            ),
            (
                self.ring != RingOptions::default() && !self.is_ring(),
                "--poll and --sqpoll need io_uring: omit them, or use --engine io_uring",
            ),
            (
                self.ring.poll && self.no_o_direct,
                "--poll needs direct I/O, but --no-o-direct uses the page cache: omit one of them",
            ),
            (
                self.workers.is_some() && !matches!(self.engine, None | Some(Engine::Threads)),
                "--workers needs --engine threads: omit one of them",
            ),
        ];
        match conflicts.into_iter().find(|(is_conflict, _)| *is_conflict) {
            Some((_, message)) => Err(Error::Usage(message.into())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::options::Options;

    fn method(words: &str) -> Method {
        Options::of(&format!("a -t b -o c {words}")).method
    }

    #[test]
    fn fake_results_name_the_option_and_real_ones_are_not_marked() {
        for (words, option) in [
            ("--engine null", "--engine null"),
            ("--engine dry-run", "--engine dry-run"),
            ("--simulate constant=1ms", "constant=1ms"),
            ("--engine simulate --simulate constant=1ms", "constant=1ms"),
            ("--no-o-direct", "--no-o-direct"),
        ] {
            let method = method(words);
            let sentence = method.fake().unwrap();
            assert!(sentence.starts_with("FAKE RESULT: ") && sentence.contains(option), "{sentence}");
            method.check().unwrap();
        }
        for words in ["--o-sync", "--o-sync --engine io_uring", "--o-sync --engine threads"] {
            assert_eq!(method(words).fake(), None);
        }
    }

    #[test]
    fn engines_can_be_selected_by_the_manuals_options() {
        let engine = |words| method(words).engine;
        assert_eq!(engine("--fake-io"), Some(Engine::Null));
        assert_eq!(engine("--dry-run"), Some(Engine::DryRun));
        assert_eq!(engine("--simulate constant=1ms"), Some(Engine::Simulate));
        assert_eq!(engine("--engine uring"), Some(Engine::IoUring));
        assert_eq!(engine(""), None);
    }

    #[test]
    fn contradictory_engine_options_are_refused() {
        for wrong in [
            "--engine simulate",
            "--simulate constant=1ms --engine threads",
            "--dry-run --poll",
            "--sqpoll --engine threads",
            "--sqpoll --fake-io",
            "--poll --no-o-direct",
            "--workers 8 --engine io_uring",
        ] {
            assert!(method(wrong).check().is_err(), "{wrong}");
        }
        for wrong in ["--dry-run --engine threads", "--fake-io --engine io_uring", "--fake-io --dry-run", "--workers 0"]
        {
            assert!(Options::parse(format!("a -t b -o c {wrong}").split(' ')).is_err(), "{wrong}");
        }
    }
}
