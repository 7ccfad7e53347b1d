//! `iosonar limit`: up to which rate a storage kept up with a growing demand.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use iosonar_trace::limit::{Limit, limit};
use iosonar_trace::params::{format_time, parse_duration, parse_positive_duration};
use iosonar_trace::{DelayReason, IoResult, Metadata, Nanos, Opened, Reader, path_text};
use serde_json::json;

use crate::console::{answer_json_line, out, status};
use crate::program::Program;
use crate::usage::refuse_pipe;
use crate::{external, human};

/// Find the rate that the storage sustained
///
/// For seconds, a queue absorbs more than the storage sustains. So the result is the rate of completions while the storage was
/// overloaded: while requests completed more than a second (--late) after their scheduled time, because more were demanded than
/// completed. A stall from which the storage recovered is no overload. If the storage completed faster at first,
/// by a cache or a burst credit, both rates are given. Use loads with a rising rate that overload the storage for a minute or more:
/// `generate ramp`, `generate bursts`, `edit … 'ramped slope=10'`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar generate ramp ramp.load.parquet --growth 20 --duration 5m
  sudo iosonar replay ramp.load.parquet --target /dev/sdb --output sdb.replay.parquet
  iosonar limit sdb.replay.parquet
  iosonar limit sdb.replay.parquet --from 2m --to 10m           # a window of the run
  iosonar limit sdb.replay.parquet --skip-warm-up               # needs the Python half
  iosonar limit --late 100ms --json before.replay.parquet after.replay.parquet")]
pub struct Args {
    /// Results of replays
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// Requests that complete longer after their scheduled time are late
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_positive_duration, allow_hyphen_values = true)]
    late: Nanos,

    /// Only requests due at this time or later: 90, 2m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    from: Option<Nanos>,

    /// Only requests due before this time: 600, 10m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    to: Option<Nanos>,

    /// Leave out the warm-up, if its end was detected (MSER); needs the Python half
    #[arg(long)]
    skip_warm_up: bool,

    /// Print a JSON object for each run
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self, program: &Program) -> Result<ExitCode> {
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            bail!("--from {} is not before --to {}", format_time(from), format_time(to));
        }
        if self.skip_warm_up {
            self.runs.iter().try_for_each(|run| refuse_pipe(run, "--skip-warm-up reads a run"))?;
        }
        for path in &self.runs {
            let Opened::Run(run) = iosonar_trace::open(path)? else {
                bail!("{} is a load: replay it, and name the result", path.display());
            };
            refuse_without_deadlines(path, run.metadata())?;
            let from = if self.skip_warm_up { self.end_of_warm_up(path, program)? } else { self.from };
            let mut run = Windowed { run, from, to: self.to };
            let limit = limit(&mut run, self.late)?;
            if limit.requests == 0 && (from.is_some() || self.to.is_some()) {
                bail!("{} has no request in this window", path.display());
            }
            let metadata = run.metadata();
            let unreadable = metadata.counts.unreadable_rows;
            if unreadable > 0 {
                let rows = human::counted(unreadable, "row");
                status!("warning: {} is damaged: {rows} unreadable, not counted", path.display());
            }
            if !metadata.complete {
                status!("warning: {} was cut short: the limit may come later", path.display());
            }
            for doubt in doubts(&limit, metadata) {
                status!("warning: {}: {doubt}", path.display());
            }
            let fake = metadata.run.as_ref().and_then(|run| run.fake.text());
            if self.json {
                let mut object = serde_json::to_value(limit)?;
                object["run"] = json!(path_text(path));
                if from.is_some() || self.to.is_some() {
                    let seconds = |at: Option<Nanos>| at.map(Nanos::as_secs);
                    object["window"] = json!({"from_s": seconds(from), "to_s": seconds(self.to)});
                }
                object["unreadable_rows"] = json!(unreadable);
                object["complete"] = json!(metadata.complete);
                object["fake"] = json!(fake);
                answer_json_line(&object);
            } else {
                fake.iter().for_each(|fake| out!("{}: {fake}", path.display()));
                out!("{}", sentence(path, &limit, self.late));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The scheduled time of the first request after the warm-up of a run, as `iosonar sql` finds it and says.
    fn end_of_warm_up(&self, path: &Path, program: &Program) -> Result<Option<Nanos>> {
        let mut sql = external::command(OsStr::new("sql"), program).context("--skip-warm-up is not possible here")?;
        sql.args(["--skip-warm-up", "--format", "csv"]);
        for (name, at) in [("--from", self.from), ("--to", self.to)] {
            sql.args(at.into_iter().flat_map(|at| [name.to_owned(), format!("{}ns", at.0)]));
        }
        sql.arg("--").arg(path).arg("SELECT min(scheduled_ns) FROM in_window");
        let found = sql.stderr(Stdio::inherit()).output().context("cannot run iosonar-sql")?;
        let text = String::from_utf8_lossy(&found.stdout);
        if !found.status.success() {
            bail!("cannot find the warm-up of {}", path.display());
        }
        // Without a request, the limit says so.
        Ok(text.lines().nth(1).and_then(|at| at.parse().ok()).map(Nanos).or(self.from))
    }
}

/// The requests of a run that are due in a window of time.
struct Windowed {
    run: Box<dyn Reader<IoResult>>,
    from: Option<Nanos>,
    to: Option<Nanos>,
}

impl Reader<IoResult> for Windowed {
    fn next(&mut self) -> iosonar_trace::Result<Option<IoResult>> {
        while let Some(row) = self.run.next()? {
            let is_late_enough = self.from.is_none_or(|from| row.scheduled >= from);
            if is_late_enough && self.to.is_none_or(|to| row.scheduled < to) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn metadata(&self) -> &Metadata {
        self.run.metadata()
    }
}

/// Refuses a run in which no request can be late.
fn refuse_without_deadlines(path: &Path, metadata: &Metadata) -> Result<()> {
    let Some(run) = &metadata.run else { return Ok(()) };
    let how = match (run.is_asap(), run.closed_loop().is_some()) {
        (true, _) => "--asap",
        (_, true) => "--closed",
        _ => return Ok(()),
    };
    bail!(
        "{} was replayed with {how}, without scheduled times, so no request can be late; replay the load without {how}",
        path.display()
    );
}

/// Reasons why the result may not be the storage's limit.
fn doubts(limit: &Limit, metadata: &Metadata) -> Vec<String> {
    let reason = match limit.delay_reason {
        Some("overlap") => Some("it overlapped a request in flight"),
        name => name.and_then(DelayReason::from_name).and_then(DelayReason::phrase),
    };
    let cause = reason.map(|reason| format!("the storage did not cause the first late request: {reason}"));
    let mut doubts: Vec<String> = cause.into_iter().collect();
    if limit.delay_reason == Some(DelayReason::Unknown.name()) {
        doubts.push(
            "the result does not say what delayed the first late request: what is found may be the replayer's limit"
                .into(),
        );
    }
    let statistics = metadata.run.as_ref().and_then(|run| run.statistics.known());
    if let Some(sentence) = statistics.and_then(|statistics| statistics.unfaithful()) {
        doubts.push(format!("what is found may be the replayer's limit: {sentence}"));
    }
    doubts
}

fn sentence(path: &Path, limit: &Limit, late: Nanos) -> String {
    let path = path.display();
    let late = human::span(late.as_secs());
    let kept_up = limit.kept_up_per_second.map(|rate| {
        format!("{} per second over {}", human::rate(rate), human::span(Nanos(limit.kept_up_ns).as_secs()))
    });
    let Some(fell_behind) = limit.fell_behind_ns else {
        let Some(kept_up) = kept_up else {
            return format!(
                "{path}: not known: too many requests completed more than {late} after their scheduled time, but no backlog \
                 grew; use a larger --late"
            );
        };
        let recovered = limit.first_late_ns.map_or(String::new(), |first| {
            format!(
                "; {} ({}) were late, the first at {}, but the storage recovered",
                human::counted(limit.late_requests, "request"),
                human::percent_of(limit.late_requests, limit.requests),
                human::span(Nanos(first).as_secs())
            )
        });
        return format!(
            "{path}: kept up to the end, with up to {kept_up}{recovered}; use a steeper or longer load to find the limit"
        );
    };
    let fell_behind = human::span(Nanos(fell_behind).as_secs());
    let demand = human::rate(limit.demanded_per_second.unwrap_or_default());
    let Some(sustained) = limit.sustained_per_second else {
        return format!(
            "{path}: requests due from {fell_behind} on were more than {late} late, at a demand of {demand} per second, for \
             less than a second; use a longer load to find the limit"
        );
    };
    let seconds = |ns: Option<i64>| human::span(Nanos(ns.unwrap_or_default()).as_secs());
    let interval = limit
        .sustained_interval
        .map_or(String::new(), |[low, high]| format!(" (95 % interval {} … {})", human::rate(low), human::rate(high)));
    let first = limit.first_per_second.map_or(String::new(), |first| {
        format!("; for {} before that it completed {} per second", seconds(limit.first_ns), human::rate(first))
    });
    // Beyond what a queue of that length adds.
    let more = kept_up
        .filter(|_| limit.kept_up_per_second.is_some_and(|rate| rate > 1.15 * sustained))
        .map_or(String::new(), |kept_up| {
            format!("; until then it kept up with {kept_up}, by a queue, a cache or a burst credit")
        });
    format!(
        "{path}: sustained {} requests per second{interval}, over {} of overload; requests due from {fell_behind} on were \
         more than {late} late, at a demand of {demand} per second; completed at most {} in a second{first}{more}",
        human::rate(sustained),
        seconds(limit.overloaded_ns),
        human::rate(limit.most_done_per_second)
    )
}
