//! `iosonar limit`: up to which rate a storage kept up with a growing demand.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_trace::limit::{Limit, limit};
use iosonar_trace::params::parse_positive_duration;
use iosonar_trace::{DelayReason, Metadata, Nanos, Opened, path_text};
use serde_json::json;

use super::info::source_bad_lines;
use crate::console::{answer_json_line, out, status};
use crate::human;

/// Find the highest rate that the storage sustained in replays with a rising rate
///
/// The limit is the highest demand of a second in which at most 5 % of the requests were late, that is issued more than a second
/// after their scheduled time (--late). A stall from which the storage recovered is no limit. A deep queue or a steep ramp hides
/// saturation for a while: the demand found is then above what the storage sustains, and the rate from then on is its own. Use
/// loads with a rising rate: `generate bursts`, `generate ramp`, `edit … 'ramped slope=10'`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar generate ramp ramp.load.parquet --growth 20 --duration 5m
  sudo iosonar replay ramp.load.parquet --target /dev/sdb --output sdb.replay.parquet
  iosonar limit sdb.replay.parquet
  iosonar limit --late 100ms --json before.replay.parquet after.replay.parquet")]
pub struct Args {
    /// Results of replays
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// Requests with a longer delay are late
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_positive_duration, allow_hyphen_values = true)]
    late: Nanos,

    /// Print a JSON object for each run
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        for path in &self.runs {
            let Opened::Run(mut run) = iosonar_trace::open(path)? else {
                bail!("{} is a load: replay it, and name the result", path.display());
            };
            refuse_without_deadlines(path, run.metadata())?;
            let source_bad_lines = source_bad_lines(&*run, &path_text(path));
            let limit = limit(&mut *run, self.late)?;
            let metadata = run.metadata();
            // Without the bad lines of the load that the run was made from.
            let unreadable = metadata.counts.bad_lines - source_bad_lines.unwrap_or(0);
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
    let kept_up = limit.kept_up_per_second.map(|count| human::counted(count, "request"));
    let Some(until) = limit.kept_up_until_ns else {
        let up_to = kept_up.map_or(String::new(), |requests| format!(", with up to {requests} per second"));
        let late = match limit.first_late_ns {
            None => String::new(),
            Some(first) => format!(
                "; {} ({}) were more than {} late, the first at {}, but the storage recovered",
                human::counted(limit.late_requests, "request"),
                human::percent_of(limit.late_requests, limit.requests),
                human::span(late.as_secs()),
                human::span(Nanos(first).as_secs())
            ),
        };
        return format!("{path}: kept up to the end{up_to}{late}; use a steeper or longer load to find the limit");
    };
    let then = limit.done_per_second.map_or(String::new(), |done| {
        format!("; from then on it completed {} per second on average", human::rate(done))
    });
    let until = human::span(Nanos(until).as_secs());
    let most = human::count(limit.most_done_per_second);
    let Some(kept_up) = kept_up else {
        let late = human::span(late.as_secs());
        return format!(
            "{path}: kept up in no full second: from {until} on, too many requests were more than {late} late{then}; it \
             completed at most {most} in a second"
        );
    };
    // Requests that come faster than the storage completes them wait. As long as they wait less than --late, the storage counts
    // as keeping up.
    let waited = match limit.kept_up_per_second {
        Some(kept_up) if kept_up > limit.most_done_per_second => {
            format!(
                "; faster requests queued for up to {} (count them with a smaller --late)",
                human::span(late.as_secs())
            )
        }
        _ => String::new(),
    };
    format!(
        "{path}: kept up with up to {kept_up} per second, and fell behind at {until}, at a demand of {} per second{then}; it \
         completed at most {most} in a second{waited}",
        human::count(limit.demanded_per_second)
    )
}
