//! What does the I/O, or does as if.

use anyhow::Result;
use clap::ValueEnum;
use iosonar_replay::address::device_map::Mapping;
use iosonar_replay::config::options::Options;
use iosonar_replay::engine::choice::{Engine, Method};
use iosonar_replay::engine::service::Simulation;

use crate::usage::misuse;

#[derive(clap::Args)]
#[command(next_help_heading = "How the I/O is done")]
pub struct MethodArgs {
    /// The I/O engine [default: io_uring; threads, with a warning, where io_uring is unavailable]
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
    /// The most threads of --engine threads [default: --depth, at most 512]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Poll for completions instead of waiting for interrupts; needs a device with poll queues
    #[arg(long)]
    poll: bool,
    /// Submit by a kernel thread (IORING_SETUP_SQPOLL), without system calls; it occupies a processor
    #[arg(long)]
    sqpoll: bool,
    /// Open targets with O_SYNC: writes complete when durable
    #[arg(long)]
    o_sync: bool,
    /// Go through the page cache; marks the result as FAKE
    #[arg(long)]
    no_o_direct: bool,
    /// Do everything but the I/O: open and check the target, build data; marks the result as FAKE
    #[arg(long)]
    dry_run: bool,
    /// Do no I/O, build no data, need no target (--engine null); marks the result as FAKE
    #[arg(long, conflicts_with_all = ["dry_run", "simulate"])]
    fake_io: bool,
    /// Simulate the I/O, with latencies constant=200us, lognormal=200us:0.5 (median, sigma) or run=FILE.replay.parquet (from
    /// an earlier run); servers=8 limits parallelism: 'constant=200us servers=8'; marks the result as FAKE
    #[arg(long, value_name = "LAW")]
    simulate: Option<Simulation>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    /// A single io_uring: the most exact
    #[value(name = "io_uring")]
    IoUring,
    /// A thread pool with blocking system calls
    Threads,
    /// No I/O: measures the replayer's own overhead
    Null,
    /// No I/O: needs --simulate
    Simulate,
}

impl MethodArgs {
    pub fn apply(self, options: &mut Options) -> Result<()> {
        let engine = match (self.engine, &self.simulate) {
            (None, Some(_)) => Some(Engine::Simulate),
            (None, None) => self.fake_io.then_some(Engine::Null),
            (Some(EngineName::IoUring), _) => Some(Engine::IoUring),
            (Some(EngineName::Threads), _) => Some(Engine::Threads),
            (Some(EngineName::Null), _) => Some(Engine::Null),
            (Some(EngineName::Simulate), _) => Some(Engine::Simulate),
        };
        options.method = Method {
            engine,
            simulate: self.simulate,
            fake_io: self.fake_io,
            dry_run: self.dry_run,
            workers: self.workers,
            poll: self.poll,
            sqpoll: self.sqpoll,
            no_o_direct: self.no_o_direct,
            o_sync: self.o_sync,
        };
        if options.targets.is_empty() {
            if options.method.has_device() {
                misuse!("name the device or file to replay on with --target");
            }
            options.targets.push(Mapping { source: None, target: "none".into() });
        }
        Ok(())
    }
}
