//! `iosonar files replay`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command, FromArgMatches};
use iosonar_files::order::Policy;
use iosonar_files::replay::{Cache, Options, Prepared, Statistics, Threads, Timing, of_calls};
use iosonar_pacing::Stop;
use iosonar_pacing::options::PacingOptions;
use iosonar_pacing::options::configured::configured;
use iosonar_pacing::payload::DataSpec;
use iosonar_trace::params::{parse_duration, parse_positive, whole_number};
use iosonar_trace::{Nanos, path_text};

use crate::commands::replay::repeat;
use crate::console::{answer_json, out, status};
use crate::live::{About, ProgressOptions, Shows};
use crate::statistics::calls::for_people;
use crate::{exit, watch};

/// Replay the calls of a trace below a directory, in a stated order at a stated time
///
/// CHANGES FILES below the root: it makes, writes, renames and removes them as the original did. Nothing outside of the root
/// is touched: no `..` and no symbolic link leads out of it.
#[derive(clap::Args)]
#[command(
    mut_args(PacingOptions::for_calls),
    after_help = "\
Examples:
  iosonar files replay tar.calls.parquet --root /mnt/test --output tar.calls-run.parquet
                                          at the times of the trace, each call after those that had
                                          ended before it began
  iosonar files replay db.calls.parquet --root /mnt/test -o fast.calls-run.parquet --asap
  iosonar files replay db.calls.parquet --root /mnt/test -o r.calls-run.parquet --order resource
                                          calls on different files may overlap more than in the trace
  iosonar files replay db.calls.parquet --root /mnt/test -o cold.calls-run.parquet --drop-caches
  iosonar files replay db.calls.parquet --root /mnt/test -o w.calls-run.parquet --start 60 --end 120
                                          the second minute; files open at its start are opened
                                          before
  iosonar files replay job.calls.parquet --root /mnt/test -o ten.calls-run.parquet --instances 10
                                          ten at once, in instance-0 to instance-9 below the root
`iosonar files prepare tar.calls.parquet --root /mnt/test` creates what the trace needs.

Exit codes: 0 success, 1 failure, 2 wrong command line, 4 the result of a call differs from the
original's, 5 the replay was cut short (the result has all calls until then)."
)]
pub struct Args {
    /// Must be the first field, as the others remove their values from the matches.
    #[command(flatten)]
    configured: Configured,
    /// The trace: NAME.calls.parquet, or strace text
    trace: PathBuf,
    /// The directory of the replay: /home/u/x of the trace is DIR/home/u/x
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// The result: NAME.calls-run.parquet
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Replace an existing result
    #[arg(long)]
    overwrite: bool,
    /// Which calls must end before a call is issued
    #[arg(long, value_enum, value_name = "HOW", default_value = "conservative", help_heading = "Order and time")]
    order: OrderArg,
    /// When calls are issued
    #[arg(long, value_enum, value_name = "WHEN", default_value = "exact", help_heading = "Order and time")]
    timing: TimingArg,
    /// Multiplies all times and gaps of the trace. Was the name of the speed-up, divided, up to version 0.1.
    #[arg(long, value_name = "F", hide = true, value_parser = parse_positive, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["speedup", "asap"])]
    factor: Option<f64>,
    #[command(flatten)]
    pacing: PacingOptions,
    /// Issue each call this much later than possible. Delays of calls that wait for each other add up, and the delay of
    /// --perturb is added
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration, help_heading = "Order and time")]
    #[arg(allow_hyphen_values = true)]
    extra_delay: Nanos,
    /// Replay only calls that begin at or after this time of the trace
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Order and time")]
    #[arg(allow_hyphen_values = true)]
    start: Option<Nanos>,
    /// Replay only calls that begin before this time of the trace
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Order and time")]
    #[arg(allow_hyphen_values = true)]
    end: Option<Nanos>,
    /// Do not check in the result that the order was kept
    #[arg(long, help_heading = "Order and time")]
    no_verify_order: bool,
    /// Concurrent instances, each in its own directory instance-K below the root, or where --map says with {instance}
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Files")]
    #[arg(value_parser = whole_number::<u32>(1..=10_000), allow_hyphen_values = true)]
    instances: u32,
    /// Replay paths of the trace at other paths below the root: a file with lines OLD NEW. The longest OLD that is the path,
    /// or a directory above it, is replaced by NEW
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    map: Option<PathBuf>,
    /// Leave out calls on these files: a pattern on each line, with *, ** and ?
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    ignore: Option<PathBuf>,
    /// The snapshot of the files before the trace [default: NAME.tree.parquet beside NAME.calls.parquet, if it exists]
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    tree_from: Option<PathBuf>,
    /// Working directory of the traced program, if the trace does not have it
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    cwd: Option<PathBuf>,
    /// Also create and open device nodes, sockets and FIFOs
    #[arg(long, help_heading = "Files")]
    special_files: bool,
    /// Also write to block devices that hold data, by their nodes below the root; never to one that is mounted or in use
    #[arg(long, requires = "special_files", help_heading = "Files")]
    force: bool,
    /// Drop the page cache of the machine before the replay (needs root)
    #[arg(long, conflicts_with = "no_cache", help_heading = "Files")]
    drop_caches: bool,
    /// Drop the cached pages of each file when it is opened
    #[arg(long, help_heading = "Files")]
    no_cache: bool,
    /// Threads that issue calls
    #[arg(long, value_enum, value_name = "WHICH", default_value = "pool", help_heading = "Issuing")]
    threads: ThreadsArg,
    /// Replay even if files that the trace needs are missing below the root: calls on them fail
    #[arg(long, help_heading = "Files")]
    unprepared: bool,
    /// Issue no calls: each is assumed to return what the original returned. Measures the replayer
    #[arg(long, help_heading = "Issuing")]
    fake_io: bool,
    #[command(flatten)]
    data: DataSpec,
    /// Print the closing statistics as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressOptions,
}

/// The options whose value is the user's default, by long name. It defines no options.
struct Configured(Vec<String>);

impl FromArgMatches for Configured {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(configured(&<Args as clap::Args>::augment_args(Command::new("replay")), matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Configured {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

/// The value of `--order`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OrderArg {
    /// All calls that had ended before it began in the trace
    Conservative,
    /// The last call that modified the same object, or the directory that holds its name
    Fs,
    /// As fs, but predecessors need only be issued, not completed; calls on a descriptor still wait for its opening
    FsDispatched,
    /// The call before it in its thread
    Thread,
    /// The call before it in its thread, and those that made or changed what it uses
    Resource,
}

/// The value of `--timing`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TimingArg {
    /// At their time in the trace, or as soon as the order allows
    Exact,
    /// As soon as the order allows: --asap
    #[value(hide = true)]
    Asap,
    /// After the same gap from the end of the latest predecessor as in the trace
    Diff,
    /// After the same gap from the start of the latest predecessor as in the trace
    Begin,
}

/// The value of `--threads`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ThreadsArg {
    /// A pool: any thread issues any call
    Pool,
    /// One for each thread of the trace, which issues the calls of that thread
    Trace,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let json = self.json;
        let shows = self.progress.start()?;
        let runs = each(self.options())?;
        let stop = Arc::new(Stop::default());
        let _handler = watch::stop_on_signals(&stop, "calls").context("cannot handle signals")?;
        let (times, mut all) = (runs.len(), Vec::new());
        for (options, number) in runs.into_iter().zip(1..) {
            if times > 1 {
                status!("run {number} of {times}");
            }
            all.push(once(options, &stop, json, &shows)?);
            if stop.is_requested() {
                break;
            }
        }
        match all.as_slice() {
            [only] if json && times == 1 => answer_json(only)?,
            all if json => answer_json(&all)?,
            _ => {}
        }
        if times > all.len() {
            status!("{} of {times} runs not started", times - all.len());
        }
        Ok(match all.as_slice() {
            all if all.len() < times || all.iter().any(|run| !run.complete) => ExitCode::from(exit::CUT_SHORT),
            all if all.iter().any(|run| run.mismatches > 0) => ExitCode::from(exit::REQUESTS_FAILED),
            _ => ExitCode::SUCCESS,
        })
    }

    fn options(self) -> Options {
        let mut pacing = self.pacing;
        if let Some(factor) = self.factor {
            pacing.speedup.speedup = 1.0 / factor;
        }
        Options {
            trace: self.trace,
            root: self.root,
            output: self.output,
            overwrite: self.overwrite,
            order: match self.order {
                OrderArg::Conservative => Policy::Conservative,
                OrderArg::Fs => Policy::Fs,
                OrderArg::FsDispatched => Policy::FsDispatched,
                OrderArg::Thread => Policy::Thread,
                OrderArg::Resource => Policy::Resource,
            },
            timing: match self.timing {
                _ if *pacing.asap => Timing::Asap,
                TimingArg::Exact => Timing::Exact,
                TimingArg::Asap => Timing::Asap,
                TimingArg::Diff => Timing::Diff,
                TimingArg::Begin => Timing::Begin,
            },
            factor: self.factor.unwrap_or(1.0 / *pacing.speedup),
            extra_delay: self.extra_delay,
            start: self.start,
            end: self.end,
            instances: self.instances,
            map: self.map,
            ignore: self.ignore,
            tree_from: self.tree_from,
            cwd: self.cwd,
            threads: match self.threads {
                ThreadsArg::Pool => Threads::Pool(pacing.depth.requests),
                ThreadsArg::Trace => Threads::Trace,
            },
            cache: match (self.drop_caches, self.no_cache) {
                (true, _) => Cache::Drop,
                (_, true) => Cache::None,
                _ => Cache::Keep,
            },
            unprepared: self.unprepared,
            fake_io: self.fake_io,
            special_files: self.special_files,
            force: self.force,
            data: self.data,
            pacing,
            verify_order: !self.no_verify_order,
            configured: self.configured.0,
        }
    }
}

/// The options of each run. One run keeps the result's name, several number it.
fn each(options: Options) -> Result<Vec<Options>> {
    let outputs = repeat::outputs(&options.output, *options.pacing.repeat, options.overwrite)?;
    Ok(outputs.into_iter().map(|output| Options { output, ..options.clone() }).collect())
}

fn once(options: Options, stop: &Arc<Stop>, json: bool, shows: &Shows) -> Result<Statistics> {
    let is_timed = options.timing.has_times();
    let (input, output) = (path_text(&options.trace), path_text(&options.output));
    let about = About { input, output, words: watch::CALLS };
    let mut shown = shows.show(about, || of_calls(is_timed));
    let prepared = Prepared::new(options, stop)?;
    for warning in prepared.warnings() {
        status!("warning: {warning}");
    }
    for change in prepared.isolation() {
        status!("isolation: {change}");
    }
    let printed = prepared.warnings().len();
    shown.begin(Some(prepared.expected_rows()), prepared.duration());
    let finished = prepared.run(&shown.progress);
    drop(shown);
    let finished = finished?;
    for warning in finished.warnings.iter().skip(printed) {
        status!("warning: {warning}");
    }
    if !json {
        out!("{}", for_people(&finished.statistics).trim_end());
        out!("result           {}", finished.output.display());
    }
    Ok(finished.statistics)
}
