//! `iosonar workload fit`: a program with the distributions of a recorded load.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use iosonar_trace::params::{parse_count, whole_number};
use iosonar_trace::path_text;
use iosonar_workload::fit::{Candidate, Choices, Fitted, FittedStream, Row, Sample, fit};
use iosonar_workload::{arrivals, positions};
use serde_json::{Value, json};

use crate::console::{answer_json, out, status};
use crate::human;
use crate::output_files;
use crate::progress::Rows;

/// Write a program with the distributions of a load, and state how well it fits
///
/// Estimates arrivals, operations, sizes and positions, chooses their kinds by statistics, generates a load of the same duration
/// and compares it with the original.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar workload fit oltp.load.parquet oltp.toml
  iosonar workload fit oltp.load.parquet oltp.toml --arrivals poisson --json | jq .mean_difference
  iosonar workload load oltp.toml like-oltp.load.parquet --for 1h --separate-devices

KS: largest difference of two distribution functions. TV: total variation, half the sum of the
differences of the shares. decades: |log10| of the ratio. by chance: the difference between two
loads of the program with different seeds. docs/workloads.md explains each row.")]
pub struct Args {
    /// The load: any format that `iosonar info` reads
    #[arg(value_name = "LOAD")]
    load: PathBuf,

    /// The program to write: NAME.toml
    #[arg(value_name = "OUT")]
    output: PathBuf,

    #[command(flatten)]
    replacing: output_files::Replacing,

    /// Use at most this many requests, from the start of the load
    #[arg(long, value_name = "COUNT", default_value = "1M", value_parser = parse_count, allow_hyphen_values = true)]
    requests: u64,

    /// One stream for all operations, or reads apart from writes [default: the better fit]
    #[arg(long, value_name = "HOW", value_parser = ["none", "reads"])]
    split: Option<String>,

    /// The kind of arrivals [default: the best fit]
    #[arg(long, value_name = "KIND", value_parser = arrivals_kind)]
    arrivals: Option<String>,

    /// The kind of positions [default: the best fit]
    #[arg(long, value_name = "KIND", value_parser = positions_kind)]
    positions: Option<String>,

    /// Seed of the loads that are compared
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole_number::<u64>(0..=u64::MAX), allow_hyphen_values = true)]
    seed: u64,

    /// Print the candidates and the comparison as a JSON object
    #[arg(long)]
    json: bool,
}

fn arrivals_kind(name: &str) -> Result<String, String> {
    arrivals::parse(name).map(|settings| settings.name().to_owned())
}

fn positions_kind(name: &str) -> Result<String, String> {
    positions::parse(name).map(|settings| settings.name().to_owned())
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let Self { load, output, replacing, requests, split, arrivals, positions, seed, json } = self;
        output_files::refuse_same_file(&load, &output)?;
        replacing.allows(&output)?;
        let mut rows = iosonar_trace::open_load(&load)?;
        let mut progress = Rows::new(&format!("reading {}", load.display()));
        let (mut sample, mut is_all) = (Sample::default(), true);
        while let Some(request) = rows.next()? {
            if sample.len() as u64 + sample.others() >= requests {
                is_all = false;
                break;
            }
            sample.add(&request);
            progress.row(|| rows.progress());
        }
        progress.finish();
        if !is_all {
            status!(
                "note: used the first {} of the load; --requests sets their number",
                human::counted(requests, "request")
            );
        }
        if sample.others() > 0 {
            let left_out = human::counted(sample.others(), "request");
            status!("note: left out {left_out} that a program does not have (writes of zeroes, empty transfers)");
        }
        let name = output.file_stem().map_or("fitted".into(), |stem| stem.to_string_lossy().into_owned());
        let of = load.file_name().unwrap_or(load.as_os_str());
        let of = format!("Fitted to {} of {}", human::counted(sample.len() as u64, "request"), path_text(of));
        let split = split.map(|how| how == "reads");
        let choices = Choices { name, of, split, arrivals, positions, seed };
        let fitted = match fit(&sample, &rows.metadata().devices, &choices) {
            Ok(fitted) => fitted,
            Err(why) => bail!("{}: {why}", load.display()),
        };
        let mut file = replacing.begin(&output)?;
        file.write_all(fitted.text.as_bytes()).with_context(|| format!("cannot write {}", output.display()))?;
        file.finish()?;
        if json {
            answer_json(&object(&fitted))?;
        } else {
            print(&fitted);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn chosen(candidates: &[Candidate]) -> &Candidate {
    candidates.iter().find(|candidate| candidate.is_chosen).unwrap_or(&candidates[0])
}

fn object(fitted: &Fitted) -> Value {
    let candidates = |all: &[Candidate]| -> Vec<Value> {
        let one = |c: &Candidate| {
            json!({"text": c.text, "kind": c.kind(), "parameters": c.parameters, "aic": c.aic, "distance": c.distance,
                   "dispersion_decades": c.dispersion, "chosen": c.is_chosen})
        };
        all.iter().map(one).collect()
    };
    let stream = |s: &FittedStream| {
        json!({"name": s.name, "requests": s.requests, "arrivals": candidates(&s.arrivals),
               "positions": candidates(&s.positions)})
    };
    let row = |r: &Row| {
        json!({"what": r.what, "statistic": r.statistic, "load": r.original, "program": r.fitted,
               "difference": r.difference, "by_chance": r.by_chance})
    };
    let tried = fitted.tried.iter().map(|(way, mean)| json!({"streams": way, "mean_difference": mean}));
    json!({
        "streams": fitted.streams.iter().map(stream).collect::<Vec<_>>(),
        "tried": tried.collect::<Vec<_>>(),
        "comparison": fitted.comparison.rows.iter().map(row).collect::<Vec<_>>(),
        "mean_difference": fitted.comparison.mean(),
    })
}

fn print(fitted: &Fitted) {
    for stream in &fitted.streams {
        let requests = human::counted(stream.requests as u64, "request");
        out!("stream {}, {requests}", stream.name);
        let of_arrivals = |c: &Candidate| {
            let aic = c.aic.map_or("–".into(), |aic| format!("{aic:.0}"));
            format!("{aic:>12} {:>8.3} {:>10.3}", c.distance, c.dispersion.unwrap_or(0.0))
        };
        table("arrivals", &format!("{:>12} {:>8} {:>10}", "AIC", "KS", "dispersion"), &stream.arrivals, of_arrivals);
        let of_positions = |c: &Candidate| format!("{:>12.3}", c.distance);
        table("positions", &format!("{:>12}", "difference"), &stream.positions, of_positions);
        out!("");
    }
    if let [_, _, ..] = fitted.tried[..] {
        for (way, mean) in &fitted.tried {
            out!("streams: {way:<26} mean difference {mean:.3}");
        }
        out!("");
    }
    out!("{:<26} {:<10} {:>10} {:>10} {:>10} {:>10}", "", "statistic", "load", "program", "difference", "by chance");
    for row in &fitted.comparison.rows {
        let value = |of: Option<f64>| of.map_or(String::new(), human::factor);
        out!(
            "{:<26} {:<10} {:>10} {:>10} {:>10.3} {:>10.3}",
            row.what,
            row.statistic,
            value(row.original),
            value(row.fitted),
            row.difference,
            row.by_chance
        );
    }
    out!("{:<26} {:<10} {:>10} {:>10} {:>10.3}", "mean difference", "", "", "", fitted.comparison.mean());
}

/// Candidates, the chosen one marked. Of several with one kind, the best.
fn table(what: &str, heading: &str, candidates: &[Candidate], columns: impl Fn(&Candidate) -> String) {
    out!("  {what:<16} {:>10}{heading}", "parameters");
    let mark = chosen(candidates);
    for candidate in candidates {
        let others = candidates.iter().filter(|other| other.kind() == candidate.kind());
        let is_best = others.clone().all(|other| other.aic.unwrap_or(0.0) >= candidate.aic.unwrap_or(0.0));
        if is_best || candidate.is_chosen {
            let sign = if std::ptr::eq(candidate, mark) { "*" } else { " " };
            out!("{sign} {:<16} {:>10}{}", candidate.kind(), candidate.parameters, columns(candidate));
        }
    }
}
