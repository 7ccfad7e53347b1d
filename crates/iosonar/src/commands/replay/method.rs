//! What does the I/O, or does as if.

use anyhow::{Result, bail};
use clap::ValueEnum;
use iosonar_replay::mapping::Mapping;
use iosonar_replay::options::Options;
use iosonar_replay::target::engine::{Engine, Method};
use iosonar_replay::target::service::Simulation;

#[derive(clap::Args)]
#[command(next_help_heading = "How the I/O is done")]
pub struct MethodArgs {
    /// What does the I/O [default: io_uring; threads where there is none, which is said]
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
    /// The most threads of --engine threads [default: the depth, but at most 512]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Look for completions at the device instead of waiting for interrupts; needs a device with queues for that
    #[arg(long)]
    poll: bool,
    /// Let a thread of the kernel take requests: no system call for them, but it needs a processor of its own
    #[arg(long)]
    sqpoll: bool,
    /// Each write is durable before it is through
    #[arg(long)]
    o_sync: bool,
    /// Through the page cache; the result is marked as FAKE
    #[arg(long)]
    no_o_direct: bool,
    /// Everything but the I/O: the target is opened and checked, data is built; the result is marked as FAKE
    #[arg(long)]
    dry_run: bool,
    /// No I/O, no data, no positions, and no target (--engine null); the result is marked as FAKE
    #[arg(long, conflicts_with_all = ["dry_run", "simulate"])]
    fake_io: bool,
    /// No I/O: each request takes a time instead, constant=200us, lognormal=200us:0.5 (median, spread) or
    /// run=FILE.replay.parquet; 'constant=200us servers=8' lets more than 8 queue up; the result is marked as FAKE
    #[arg(long, value_name = "LAW")]
    simulate: Option<Simulation>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    /// One io_uring: the most exact
    #[value(name = "io_uring")]
    IoUring,
    /// A pool of threads, each doing one request at a time
    Threads,
    /// Nothing does it: what the replayer costs by itself
    Null,
    /// Nothing does it: needs --simulate
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
                bail!("say with --target which device or file to replay on");
            }
            options.targets.push(Mapping { source: None, target: "none".into() });
        }
        Ok(())
    }
}
