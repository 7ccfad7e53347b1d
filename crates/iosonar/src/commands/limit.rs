//! `iosonar limit`: up to which rate a storage kept up with a growing demand.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_trace::limit::{Limit, limit};
use iosonar_trace::words::parse_time;
use iosonar_trace::{Metadata, Nanos, Opened};
use serde_json::json;

use super::info::told_before;
use crate::human;
use crate::told::{answer, tell};

/// Tell up to which rate a storage kept up, from replays of growing demand
///
/// A storage kept up until the first request that could only be issued more than a second after its time. It makes sense
/// for loads whose demand grows: `generate bursts`, `generate ramp`, `edit … 'ramped slope=10'`. What was demanded then is more
/// than the storage can do if a deep queue or a steep growth hid that for a while; what it did from then on is its own.
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

    /// From which delay on a request counts as late
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time, allow_hyphen_values = true)]
    late: Nanos,

    /// Print one JSON object for each run
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        if self.late <= Nanos::ZERO {
            bail!("--late must be more than 0: no request goes out just in time; 1ms would be a short one");
        }
        for path in &self.runs {
            let Opened::Run(mut run) = iosonar_trace::open(path)? else {
                bail!("{} is a load: replay it, and give the result", path.display());
            };
            refuse_without_deadlines(path, run.metadata())?;
            let told = told_before(&*run, &path.to_string_lossy());
            let limit = limit(&mut *run, self.late)?;
            let metadata = run.metadata();
            // Those that were told of before are the load's.
            let unreadable = metadata.counts.bad_lines - told.unwrap_or(0);
            if unreadable > 0 {
                let rows = human::counted(unreadable, "row");
                tell!("warning: {} is damaged: {rows} could not be read, and are not counted", path.display());
            }
            if !metadata.complete {
                tell!("warning: {} was cut short: what came later is not known", path.display());
            }
            for doubt in doubts(&limit, metadata) {
                tell!("warning: {}: {doubt}", path.display());
            }
            let fake = metadata.run.as_ref().and_then(|run| run["fake"].as_str());
            if self.json {
                let mut object = serde_json::to_value(limit)?;
                object["run"] = json!(path);
                object["unreadable_rows"] = json!(unreadable);
                object["complete"] = json!(metadata.complete);
                object["fake"] = json!(fake);
                answer!("{object}");
            } else {
                fake.iter().for_each(|fake| answer!("{}: {fake}", path.display()));
                answer!("{}", sentence(path, &limit));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Where requests go when there is room for them none is ever late.
fn refuse_without_deadlines(path: &Path, metadata: &Metadata) -> Result<()> {
    let Some(options) = metadata.run.as_ref().map(|run| &run["options"]) else { return Ok(()) };
    let how = match (options["asap"] == true, options["closed"].is_string()) {
        (true, _) => "--asap",
        (_, true) => "--closed",
        _ => return Ok(()),
    };
    bail!(
        "{} was replayed with {how}: its requests went when there was room for them, and so none can be late; replay the \
         load at its own times",
        path.display()
    );
}

/// Why what is found may not be the storage's limit.
fn doubts(limit: &Limit, metadata: &Metadata) -> Vec<String> {
    let kept = match limit.held_by {
        Some("input") => "the load was not read, or data not built, in time",
        Some("recorder") => "the record of the run could not be written fast enough",
        Some("perturbed") => "it was put off on purpose",
        Some("overlap") => "it waited for one that it overlaps",
        Some("order") => "an earlier one waited for one that it overlaps",
        _ => "",
    };
    let mut doubts = Vec::new();
    if !kept.is_empty() {
        doubts.push(format!("the first late request was not kept by a storage that did too little: {kept}"));
    }
    let verdict = metadata.run.as_ref().map(|run| &run["statistics"]["verdict"]);
    if let Some(verdict) = verdict.filter(|verdict| verdict["faithful"] == false) {
        doubts
            .push(format!("what is found may be the replayer's limit: {}", verdict["sentence"].as_str().unwrap_or("")));
    }
    doubts
}

fn sentence(path: &Path, limit: &Limit) -> String {
    let demanded = limit.demanded_per_second;
    let Some(until) = limit.kept_up_until_ns else {
        return format!(
            "{}: kept up to the end, with up to {demanded} requests per second; a steeper or longer load finds the limit",
            path.display()
        );
    };
    let then = limit.done_per_second.map_or(String::new(), |done| {
        format!("; from then on it did {done:.0} per second, which is what the storage can do")
    });
    let until = human::span(Nanos(until).as_secs());
    format!("{}: kept up until {until}, when {demanded} requests per second were demanded{then}", path.display())
}
