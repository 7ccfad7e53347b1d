//! `iosonar replay`: issues the requests of a load on a device, each at its time.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use iosonar_replay::conflicts::{Policy, Strong};
use iosonar_replay::issuer::Stop;
use iosonar_replay::options::{Options, Wait, Window};
use iosonar_replay::placement::Align;
use iosonar_replay::recorder::Progress;
use iosonar_replay::run::Prepared;
use iosonar_trace::transforms::Pipeline;
use iosonar_trace::{Nanos, SECTOR_BYTES};

use crate::statistics;
use crate::{human, watch};

/// Replay a load on a device or a file, each request at its time
///
/// DESTROYS DATA on the target: every write of the load is written there. A target that is mounted or otherwise in use is
/// always refused; one that carries a file system, LVM, RAID or partitions only goes with --force.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar replay mysql.load.gz --target /dev/sdb --output sdb.replay.parquet
  iosonar replay mysql.load.gz --target /dev/sdb --output part.replay.parquet --start 600 --end 900
                                          five minutes of it, from the tenth on
  iosonar replay mysql.load.gz --target /dev/sdb --output fast.replay.parquet --asap --depth 64
  iosonar replay mysql.load.gz --target /srv/test.img --output file.replay.parquet --speedup 10
  iosonar replay x.load.gz -t /dev/sdb -o y.replay.parquet --duration 86400 --edit 'repeat | slip'
                                          a day of it, always at slightly other places
Then look at it: iosonar report sdb.replay.parquet

Exit codes: 0 done, 1 could not be done, 2 the command line was wrong, 4 done, but requests
failed or were cut short by the target, 5 the run was cut short (what it did is in the result).")]
pub struct Args {
    /// The load, in any format that `iosonar convert` reads; - is standard input
    load: PathBuf,
    /// Change the load on its way, as `iosonar edit` does: 'select from=0 to=300 | slip every=32768 increase=256'
    #[arg(long, value_name = "PIPELINE", value_parser = super::edit::parse)]
    edit: Option<Pipeline>,
    /// The block device or regular file to replay on; its content is overwritten
    #[arg(long, short, value_name = "DEV_OR_FILE")]
    target: PathBuf,
    /// The result; by its ending Parquet or classic text
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    time: Time,
    #[command(flatten)]
    engine: Engine,
    /// Overwrite a target that carries a file system, LVM, RAID or partitions
    #[arg(long)]
    force: bool,
    /// Replace an existing result
    #[arg(long)]
    overwrite: bool,
    /// Print the closing statistics as one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Time")]
struct Time {
    /// Leave out what lies before this time of the load, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    start: f64,
    /// Leave out what lies at or after this time of the load, in seconds; 0 is its end
    #[arg(long, value_name = "S", default_value_t = 0.0, conflicts_with = "duration")]
    end: f64,
    /// Replay that many seconds of the load, from --start on; 0 is all
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    duration: f64,
    /// Divide all times of the load by this
    #[arg(long, value_name = "F", default_value_t = 1.0, conflicts_with = "asap")]
    speedup: f64,
    /// Issue each request as soon as there is room, whatever its time
    #[arg(long)]
    asap: bool,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Engine")]
struct Engine {
    /// The most requests in flight (1 to 65536)
    #[arg(long, alias = "threads", value_name = "N", default_value_t = 512)]
    depth: usize,
    /// What to do with requests that are not aligned to the target's logical blocks
    #[arg(long, value_enum, default_value_t = AlignName::Expand)]
    align: AlignName,
    /// What to do with a request that overlaps one in flight
    #[arg(long, value_enum, default_value_t = PolicyName::Partial)]
    conflicts: PolicyName,
    /// Which overlaps count: 0 two writes, 1 all but two reads, 2 any
    #[arg(long, value_name = "0|1|2", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    strong: u8,
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
    /// Also record what describes the replayer itself
    #[arg(long)]
    verbose: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum AlignName {
    /// Widen them to whole blocks
    Expand,
    /// Leave them out, and count them
    Reject,
}

#[derive(Clone, Copy, ValueEnum)]
enum PolicyName {
    /// Issue it all the same
    Allow,
    /// Leave it out, and count it
    Drop,
    /// Push it back until the overlap has gone; others go on
    Partial,
    /// Wait until the overlap has gone; so does everything behind it
    Ordering,
}

#[derive(Clone, Copy, ValueEnum)]
enum WaitName {
    /// Exact, takes a processor
    Spin,
    /// Sleeps until shortly before each deadline
    Hybrid,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let json = self.json;
        let options = self.options()?;
        replay(options, json)
    }

    fn options(self) -> Result<Options> {
        let Self { load, edit, target, output, time, engine, force, overwrite, .. } = self;
        let mut options = Options::new(load, target, output);
        options.edit = edit;
        options.window = time.window()?;
        options.speedup = time.speedup;
        options.asap = time.asap;
        options.depth = engine.depth;
        options.align = match engine.align {
            AlignName::Expand => Align::Expand,
            AlignName::Reject => Align::Reject,
        };
        options.conflicts = match engine.conflicts {
            PolicyName::Allow => Policy::Allow,
            PolicyName::Drop => Policy::Drop,
            PolicyName::Partial => Policy::Partial,
            PolicyName::Ordering => Policy::Ordering,
        };
        options.strong = [Strong::Writes, Strong::AnyWrite, Strong::Everything][usize::from(engine.strong)];
        options.buffers = engine.buffers << 20;
        options.ahead_requests = engine.ahead as usize;
        options.wait = engine.wait.map(|wait| match wait {
            WaitName::Spin => Wait::Spin,
            WaitName::Hybrid => Wait::Hybrid,
        });
        (options.verbose, options.force, options.overwrite) = (engine.verbose, force, overwrite);
        Ok(options)
    }
}

impl Time {
    fn window(&self) -> Result<Window> {
        for (name, value) in [("start", self.start), ("end", self.end), ("duration", self.duration)] {
            if !(value.is_finite() && value >= 0.0) {
                bail!("--{name} must be a number of seconds, 0 or more");
            }
        }
        let start = Nanos::from_secs(self.start);
        let end = match (self.end, self.duration) {
            (end, _) if end > 0.0 => Nanos::from_secs(end),
            (_, duration) if duration > 0.0 => start + Nanos::from_secs(duration),
            _ => Nanos::MAX,
        };
        Ok(Window { start, end })
    }
}

/// Replays, with a bar on a terminal and quiet lines elsewhere. Other commands replay through this one as well.
pub fn replay(options: Options, json: bool) -> Result<ExitCode> {
    let prepared = Prepared::new(options)?;
    announce(&prepared);
    let stop = Arc::new(Stop::default());
    let progress = Arc::new(Progress::default());
    watch::stop_on_signals(&stop).context("signals can't be caught")?;
    let bar = watch::Bar::start(&progress, prepared.survey().map(|s| s.requests), prepared.duration());
    let finished = prepared.run(&stop, &progress)?;
    bar.finish();
    for warning in &finished.warnings {
        eprintln!("warning: {warning}");
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&finished.statistics)?);
    } else {
        print!("{}", statistics::for_people(&finished.statistics));
        println!("result           {}", finished.output.display());
    }
    Ok(statistics::exit_code(&finished.statistics))
}

/// Says what is going to be overwritten, before it is.
fn announce(prepared: &Prepared) {
    let device = &prepared.devices()[0];
    let size = human::block(device.geometry.sectors * SECTOR_BYTES);
    let what = prepared.survey().map_or_else(
        || "whatever the load writes".to_owned(),
        |s| format!("{} of {} requests write", s.writes, s.requests),
    );
    eprintln!("{}: {size}; its content is overwritten: {what}", device.path.display());
    if !std::io::stderr().is_terminal()
        && let Some(duration) = prepared.duration()
    {
        eprintln!("this takes {}", human::span(Duration::from_nanos(duration.0.max(0) as u64).as_secs_f64()));
    }
}
