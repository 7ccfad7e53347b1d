//! `--repeat`: the same replay several times, with a result for each run, to see the variance.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use iosonar_replay::config::options::Options;
use iosonar_replay::config::plan::WaitChoice;
use iosonar_replay::config::validation as checks;
use iosonar_trace::run_info::{Quantiles, Statistics, Verdict};

use crate::human;
use crate::usage::misuse;

/// Endings of results' names, the longest first.
const ENDINGS: [&str; 5] = [".calls-run.parquet", ".replay.parquet", ".replay.gz", ".replay.zst", ".replay"];

/// The options of each run. One run keeps the result's name, several number it.
pub fn each(options: Options) -> Result<Vec<Options>> {
    let times = *options.pacing.repeat;
    if times == 1 {
        return Ok(vec![options]);
    }
    if options.is_piped() {
        misuse!("--repeat cannot reread a pipe: name a file as the load");
    }
    let outputs = outputs(options.output(), times, options.result.overwrite)?;
    let runs: Vec<_> = outputs.into_iter().map(|output| Options { output: Some(output), ..options.clone() }).collect();
    runs.iter().try_for_each(checks::check)?;
    Ok(runs)
}

/// The result of each run. One run keeps the name, several number it.
pub fn outputs(output: &Path, times: u32, overwrite: bool) -> Result<Vec<PathBuf>> {
    if times == 1 {
        return Ok(vec![output.to_owned()]);
    }
    let outputs = names(output, times);
    // Fail before the first run, not hours later.
    if let Some(existing) = outputs.iter().find(|output| output.exists() && !overwrite) {
        bail!("{} exists; name other results with --output, or replace them with --overwrite", existing.display());
    }
    Ok(outputs)
}

/// `sdb.replay.parquet` three times is `sdb.1.replay.parquet` to `sdb.3.replay.parquet`.
fn names(output: &Path, times: u32) -> Vec<PathBuf> {
    let name = output.file_name().unwrap_or_default().as_bytes();
    let known = ENDINGS.iter().find(|ending| name.ends_with(ending.as_bytes())).map(|ending| name.len() - ending.len());
    let last_dot = || name.iter().rposition(|&byte| byte == b'.').filter(|&dot| dot > 0);
    let (front, ending) = name.split_at(known.or_else(last_dot).unwrap_or(name.len()));
    let width = times.to_string().len();
    let numbered = |number| [front, format!(".{number:0width$}").as_bytes(), ending].concat();
    (1..=times).map(|number| output.with_file_name(OsStr::from_bytes(&numbered(number)))).collect()
}

/// The range of each statistic over the runs.
pub fn between(runs: &[Statistics]) -> String {
    let mut out = format!("variance of {} runs\n", runs.len());
    let mut line = |name: &str, values: Vec<f64>, shown: fn(f64) -> String| {
        let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(a, b), &x| (a.min(x), b.max(x)));
        if least > most {
            return;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let spread =
            if mean > 0.0 { format!(" (spread {})", human::percent((most - least) / mean)) } else { String::new() };
        out += &format!("{name:<17}{} to {}{spread}\n", shown(least), shown(most));
    };
    let latency = |of: fn(&Quantiles) -> Option<f64>| {
        runs.iter().filter_map(|run| run.latency_us.as_ref()).filter_map(of).collect()
    };
    let span = |us: f64| human::span(us / 1e6);
    line("  median", latency(|q| q.p50), span);
    line("  p99", latency(|q| q.p99), span);
    line("  p99.9", latency(|q| q.p999), span);
    line("  rate", runs.iter().map(|run| run.iops).collect(), |x| format!("{} requests/s", human::rate(x)));
    let faithful = runs.iter().filter(|run| run.verdict.as_ref().is_some_and(Verdict::is_faithful)).count();
    if runs.iter().any(|run| run.verdict.as_ref().is_some_and(|verdict| verdict.faithful.is_some())) {
        let least = least_faithful(runs).map_or(String::new(), |(number, _)| format!(", run {number} the least"));
        out += &format!("  faithful       {faithful} of {}{least}\n", runs.len());
    }
    out
}

/// The run that was the least faithful: the remedies of a series are its remedies.
pub fn least_faithful(runs: &[Statistics]) -> Option<(usize, &Statistics)> {
    let within = |run: &Statistics| run.verdict.as_ref()?.own.within_pct.as_ref().map(|within| within.us50);
    let is_unfaithful = |run: &Statistics| run.verdict.as_ref().is_some_and(Verdict::is_unfaithful);
    let unfaithful = runs.iter().zip(1..).filter(|(run, _)| is_unfaithful(run));
    let least = unfaithful.min_by(|(a, _), (b, _)| within(a).unwrap_or(0.0).total_cmp(&within(b).unwrap_or(0.0)));
    least.map(|(run, number)| (number, run))
}

/// What the runs of a series share.
#[derive(Debug, Default)]
pub struct Series {
    /// What they said so far.
    pub warnings: Warnings,
    /// How the loop of the first one waits.
    pub wait: Option<WaitChoice>,
}

/// The warnings of a series: each is said once, though the numbers in it differ from run to run.
#[derive(Debug, Default)]
pub struct Warnings {
    earlier: HashSet<String>,
    of_run: HashSet<String>,
}

impl Warnings {
    /// Begins the next run.
    pub fn next_run(&mut self) {
        self.earlier.extend(self.of_run.drain());
    }

    /// Whether no earlier run said it.
    pub fn is_new(&mut self, warning: &str) -> bool {
        let masked =
            |word: &str| if word.starts_with(|c: char| c.is_ascii_digit()) { "#".into() } else { word.to_owned() };
        let kind = warning.split_whitespace().map(masked).collect::<Vec<_>>().join(" ");
        let is_new = !self.earlier.contains(&kind);
        self.of_run.insert(kind);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_precede_the_ending_and_sort_in_order_of_runs() {
        let named = |name: &str, times| {
            let names = names(Path::new(name), times);
            names.iter().map(|name| name.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(named("/a.b/sdb.replay.parquet", 2), ["/a.b/sdb.1.replay.parquet", "/a.b/sdb.2.replay.parquet"]);
        assert_eq!(named("sdb.replay.gz", 1), ["sdb.1.replay.gz"]);
        assert_eq!(named("v1.2.parquet", 1), ["v1.2.1.parquet"]);
        assert_eq!(named("plain", 1), ["plain.1"]);
        assert_eq!(named(".hidden", 1), [".hidden.1"]);
        let twelve = named("x.replay.parquet", 12);
        assert!(twelve.is_sorted() && twelve[0] == "x.01.replay.parquet" && twelve.len() == 12, "{twelve:?}");
    }

    #[test]
    fn a_warning_is_said_once_in_a_series_whatever_its_numbers() {
        let mut warnings = Warnings::default();
        assert!(warnings.is_new("the replay had 25.2 requests in flight, but vda only 3.24"));
        assert!(warnings.is_new("/dev/nvme0n1 wrapped around"));
        assert!(warnings.is_new("/dev/nvme1n1 wrapped around"));
        warnings.next_run();
        assert!(!warnings.is_new("the replay had 1,019 requests in flight, but vda only 4"));
        assert!(warnings.is_new("the replay had 25.2 requests in flight, but vdb only 3.24"));
        assert!(warnings.is_new("/dev/nvme2n1 wrapped around"));
        warnings.next_run();
        assert!(!warnings.is_new("/dev/nvme1n1 wrapped around"));
    }
}
