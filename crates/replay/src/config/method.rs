//! What does the I/O, or simulates it, and how real the result is.

use clap::ValueEnum;
use clap::builder::{ArgPredicate, TypedValueParser};
use serde::Serialize;

use crate::engine::service::Simulation;
use crate::error::{Error, Result};

/// The first words of the sentence on every picture of a result that says nothing about a device.
pub const FAKE: &str = "FAKE RESULT: ";

/// The engine and its settings.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "How the I/O is done")]
pub struct Method {
    /// The I/O engine [default: io_uring; threads, with a warning, where io_uring is unavailable]
    #[arg(long, value_enum)]
    #[arg(default_value_if("fake_io", ArgPredicate::IsPresent, "null"))]
    #[arg(default_value_if("dry_run", ArgPredicate::IsPresent, "dry-run"))]
    #[arg(default_value_if("simulate", ArgPredicate::IsPresent, "simulate"))]
    pub engine: Option<Engine>,
    /// The most threads of --engine threads [default: --depth, at most 512]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536).map(|n| n as usize))]
    pub workers: Option<usize>,
    /// Settings of io_uring.
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
    /// Simulate the I/O, with latencies constant=200us, lognormal=200us:0.5 (median, sigma) or run=FILE.replay.parquet (from
    /// an earlier run); servers=8 limits parallelism: 'constant=200us servers=8'; marks the result as FAKE
    #[arg(long, value_name = "LAW")]
    pub simulate: Option<Simulation>,
}

/// How an io_uring works, beyond the ordinary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args, Serialize)]
pub struct RingOptions {
    /// Poll for completions instead of waiting for interrupts; needs a device with poll queues
    #[arg(long)]
    pub poll: bool,
    /// Submit by a kernel thread (IORING_SETUP_SQPOLL), without system calls; it occupies a processor
    #[arg(long)]
    pub sqpoll: bool,
}

/// What does the I/O, or does as if.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// A single io_uring: the most exact
    #[value(name = "io_uring", alias = "uring")]
    IoUring,
    /// A thread pool with blocking system calls
    Threads,
    /// No I/O, no data, no target: measures the replayer's own overhead; marks the result as FAKE
    Null,
    /// Everything but the I/O: opens and checks the target, builds data; marks the result as FAKE
    DryRun,
    /// No I/O: needs --simulate
    Simulate,
}

impl Engine {
    /// Its name, as the run's footer has it.
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
    /// Whether requests reach a device, or at least the page cache before it.
    pub fn does_io(&self) -> bool {
        matches!(self.engine, None | Some(Engine::IoUring | Engine::Threads))
    }

    /// Whether an io_uring does the I/O, unless there is none.
    pub fn is_ring(&self) -> bool {
        matches!(self.engine, None | Some(Engine::IoUring))
    }

    /// Whether there is a device at all: it is opened and checked, requests are placed on it, their data is built.
    pub fn has_device(&self) -> bool {
        self.does_io() || self.engine == Some(Engine::DryRun)
    }

    /// The sentence to stamp across everything that comes out of the run; `None` if it is real.
    pub fn fake(&self) -> Option<String> {
        let why = match (self.engine, &self.simulate) {
            (Some(Engine::Simulate), Some(simulation)) => {
                format!("no I/O was done, each request took a simulated time (--simulate '{simulation}')")
            }
            (Some(Engine::DryRun), _) => "everything but the I/O was done (--engine dry-run)".into(),
            (Some(Engine::Null), _) => "no I/O was done, no data moved, nothing was positioned (--engine null)".into(),
            _ if self.no_o_direct => "the page cache answered in the device's place (--no-o-direct)".into(),
            _ => return None,
        };
        Some(format!("{FAKE}{why}"))
    }

    /// Refuses what contradicts itself.
    pub fn check(&self) -> Result<()> {
        let rules = [
            (
                self.engine == Some(Engine::Simulate) && self.simulate.is_none(),
                "--engine simulate needs to know how long requests take: say --simulate constant=200us, for example",
            ),
            (
                self.simulate.is_some() && self.engine != Some(Engine::Simulate),
                "--simulate is an engine of its own: leave out --engine, or say --engine simulate",
            ),
            (
                self.ring != RingOptions::default() && !self.is_ring(),
                "--poll and --sqpoll are ways of io_uring: leave them out, or say --engine io_uring",
            ),
            (
                self.ring.poll && self.no_o_direct,
                "--poll works on the device itself, and --no-o-direct on the page cache: leave out one of them",
            ),
            (
                self.workers.is_some() && !matches!(self.engine, None | Some(Engine::Threads)),
                "--workers are those of --engine threads: leave it out",
            ),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            Some((_, advice)) => Err(Error::Usage(advice.into())),
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
    fn what_is_fake_says_so_and_what_is_real_does_not() {
        for (words, word) in [
            ("--engine null", "--engine null"),
            ("--engine dry-run", "--engine dry-run"),
            ("--simulate constant=1ms", "constant=1ms"),
            ("--engine simulate --simulate constant=1ms", "constant=1ms"),
            ("--no-o-direct", "--no-o-direct"),
        ] {
            let method = method(words);
            let sentence = method.fake().unwrap();
            assert!(sentence.starts_with("FAKE RESULT: ") && sentence.contains(word), "{sentence}");
            method.check().unwrap();
        }
        for words in ["--o-sync", "--o-sync --engine io_uring", "--o-sync --engine threads"] {
            assert_eq!(method(words).fake(), None);
        }
    }

    #[test]
    fn engines_have_the_names_of_the_manual_as_well() {
        let engine = |words| method(words).engine;
        assert_eq!(engine("--fake-io"), Some(Engine::Null));
        assert_eq!(engine("--dry-run"), Some(Engine::DryRun));
        assert_eq!(engine("--simulate constant=1ms"), Some(Engine::Simulate));
        assert_eq!(engine("--engine uring"), Some(Engine::IoUring));
        assert_eq!(engine(""), None);
    }

    #[test]
    fn contradictions_are_refused() {
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
