//! `iosonar replay`: issues the requests of a load on a device, each at its time. The options are those of the engine, defined
//! in `iosonar_replay::config`.

mod announce;
mod calibrate;
pub mod repeat;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use iosonar_pacing::Stop;
use iosonar_replay::config::options::Options;
use iosonar_replay::result::live::of_requests;
use iosonar_replay::run::Prepared;
use iosonar_trace::path_text;
use iosonar_trace::run_info::Statistics;

use self::announce::announce;
use crate::console::{answer_json, out, status};
use crate::live::{About, ProgressOptions, Shows};
use crate::usage::misuse;
use crate::{exit, statistics, watch};

/// Replay a load, each request at its scheduled time
///
/// DESTROYS DATA on the targets: it replays the writes of the load there. Refuses a target that is mounted or otherwise in
/// use. Needs --force for one with a file system, LVM, RAID or partitions, and for a file with data.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar replay mysql.load.gz --target /dev/sdb --output sdb.replay.parquet
  iosonar replay mysql.load.gz --target /dev/sdb --output part.replay.parquet --start 600 --end 900
                                          five minutes of it, from minute 10
  iosonar replay mysql.load.gz --target /dev/sdb --output fast.replay.parquet --asap --depth 64
  iosonar replay mysql.load.gz --target /srv/test.img --output file.replay.parquet --speedup 10
  iosonar replay x.load.gz -t /dev/sdb -o y.replay.parquet --duration 86400 --edit 'repeat | slip'
                                          a day of it, each iteration at shifted positions
  iosonar replay host.load -t sda=/dev/sdb -t sdb=/dev/sdc -o a.replay.parquet --depth each=64
                                          two devices of a load, with a depth of 64 each
  iosonar replay x.load.gz -t /dev/sdb -o y.replay.parquet --loop --for 10m
                                          in a loop for ten minutes
  iosonar replay x.load.gz -t /dev/sdb -o old.replay.parquet --repeat 5
                                          five results, old.1.replay.parquet and so on
  iosonar replay --calibrate              the rate that this machine can replay faithfully
To see the result: iosonar report sdb.replay.parquet

Exit codes: 0 success, 1 failure, 2 wrong command line, 4 requests failed or were short,
5 the run was cut short (the result has all requests until then).")]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// Print the closing statistics as a JSON object
    #[arg(long, help_heading = "Result")]
    json: bool,
    #[command(flatten)]
    progress: ProgressOptions,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        if self.options.modes.calibrate {
            if self.progress.is_given() {
                misuse!("--calibrate makes no run that --progress, --live or --metrics could show");
            }
            return calibrate::run(&self.options, self.json);
        }
        replay(repeat::each(self.options)?, self.json, &self.progress)
    }
}

/// Replays the runs one after the other; a signal ends them all.
pub fn replay(runs: Vec<Options>, json: bool, progress: &ProgressOptions) -> Result<ExitCode> {
    let shows = progress.start()?;
    let stop = Arc::new(Stop::default());
    let _handler = watch::stop_on_signals(&stop, "requests").context("cannot handle signals")?;
    let (times, mut all, mut series) = (runs.len(), Vec::new(), repeat::Series::default());
    for (options, number) in runs.into_iter().zip(1..) {
        if times > 1 {
            status!("run {number} of {times}");
        }
        series.warnings.next_run();
        all.push(once(options, &stop, json, &shows, &mut series)?);
        if stop.is_requested() {
            break;
        }
    }
    match all.as_slice() {
        [only] if json && times == 1 => answer_json(only)?,
        all if json => answer_json(&all)?,
        all => {
            if all.len() > 1 {
                out!("{}", repeat::between(all).trim_end());
            }
            let remedies = repeat::least_faithful(all).map(|(_, run)| statistics::remedies(run)).unwrap_or_default();
            if times > 1 && !remedies.is_empty() {
                out!("{}", remedies.trim_end());
            }
        }
    }
    let not_begun = times - all.len();
    if not_begun > 0 {
        status!("{not_begun} of {times} runs not started");
        return Ok(ExitCode::from(exit::CUT_SHORT));
    }
    Ok(statistics::exit_code(&all))
}

fn once(
    options: Options,
    stop: &Arc<Stop>,
    json: bool,
    shows: &Shows,
    series: &mut repeat::Series,
) -> Result<Statistics> {
    let is_alone = *options.pacing.repeat == 1;
    let is_timed = options.has_deadlines();
    let input = options.load.as_deref().map(path_text).or_else(|| options.program.program.clone());
    let about = About {
        input: input.unwrap_or_default(),
        output: options.output.as_deref().map(path_text).unwrap_or_default(),
        words: watch::REQUESTS,
    };
    let mut shown = shows.show(about, || of_requests(is_timed));
    let prepared = Prepared::new(options, series.wait, stop)?;
    series.wait.get_or_insert(prepared.plan().waiting);
    announce(&prepared, &mut series.warnings);
    let printed = prepared.warnings().len();
    shown.begin(prepared.expected_rows(), prepared.duration());
    let finished = prepared.run(&shown.progress)?;
    drop(shown);
    statistics::print_findings(&finished);
    // `announce` has printed those from before the run.
    for warning in finished.warnings.iter().skip(printed).filter(|warning| series.warnings.is_new(warning)) {
        status!("warning: {warning}");
    }
    if !json {
        let remedies = if is_alone { statistics::remedies(&finished.statistics) } else { String::new() };
        out!("{}", (statistics::for_people(&finished.statistics) + &remedies).trim_end());
        out!("result           {}", finished.output.display());
    }
    Ok(finished.statistics)
}
