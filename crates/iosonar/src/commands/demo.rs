//! `iosonar demo`: from a load to pictures, on a file that the demo creates.
//!
//! It prints and runs the commands that a user would type, through the same command-line parser.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use iosonar_device::content;
use iosonar_pacing::host::isolation as isolate;
use iosonar_pacing::payload::{DataSpec, Payload};
use iosonar_trace::params::{parse_duration, parse_memory};
use iosonar_trace::run_info::Verdict;
use iosonar_trace::{Nanos, Opened};

use crate::console::out;
use crate::external;
use crate::program::Program;

const MIB: u64 = 1 << 20;

/// The load of `--load natural`; part of the binary, because an installation has no directory of loads.
const NATURAL: &[u8] = include_bytes!("../../natural.load.parquet");

/// Try it: replay a load on a file, and draw the result
#[derive(clap::Args)]
#[command(after_help = "\
The demo uses no device: the target is a file in DIR, filled with incompressible data.

Examples:
  iosonar demo                                        12 seconds of SQLite's I/O
  iosonar demo --load bursts                          growing bursts, until the storage saturates
  iosonar demo --out /mnt/disk/demo                   on the disk mounted there")]
pub struct Args {
    /// Directory for the load, the target, the result and the pictures
    #[arg(long, value_name = "DIR", default_value = "demo")]
    out: PathBuf,
    /// Size of the target
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = target_size, allow_hyphen_values = true)]
    size: u64,
    /// The load to replay
    #[arg(long, value_enum, default_value_t = DemoLoad::Natural)]
    load: DemoLoad,
    /// Duration of the bursts
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    seconds: Nanos,
    /// Open the page in a browser at the end
    #[arg(long)]
    open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DemoLoad {
    /// A recording of SQLite: single-row transactions, queries, an index and VACUUM
    Natural,
    /// Artificial: bursts of requests, each a little larger than the one before
    Bursts,
}

/// From two seconds to an hour.
fn seconds(text: &str) -> Result<Nanos, String> {
    Some(parse_duration(text)?)
        .filter(|time| (2..=3600).contains(&(time.0 / 1_000_000_000)))
        .ok_or_else(|| format!("`{text}`: give a duration from 2s to 1h, for example 30s"))
}

/// From 64 MiB to 1 TiB, in whole MiB.
fn target_size(text: &str) -> Result<u64, String> {
    Some(parse_memory(text)? / MIB * MIB)
        .filter(|size| *size >= 64 * MIB)
        .ok_or_else(|| format!("`{text}` is too small; give a size from 64M to 1T"))
}

impl DemoLoad {
    /// The stem of its files' names.
    fn name(self) -> &'static str {
        match self {
            Self::Natural => "sqlite",
            Self::Bursts => "bursts",
        }
    }
}

impl Args {
    pub fn run(self, program: &Program) -> Result<ExitCode> {
        // Fail early if iosonar-report is missing.
        external::command(OsStr::new("report"), program)?;
        let pictures = self.out.join("pictures");
        fs::create_dir_all(&pictures).with_context(|| format!("cannot make the directory {}", pictures.display()))?;
        let name = self.load.name();
        let load = self.out.join(format!("{name}.load.parquet"));
        let run = self.out.join(format!("{name}.replay.parquet"));
        let target = self.out.join("target");
        for earlier in [&load, &run] {
            if earlier.exists() {
                fs::remove_file(earlier).with_context(|| format!("cannot remove {}", earlier.display()))?;
            }
        }

        match self.load {
            DemoLoad::Natural => {
                say("The load: a recording of SQLite's I/O that comes with iosonar.");
                fs::write(&load, NATURAL).with_context(|| format!("cannot write {}", load.display()))?;
                run_own(program, &[words("info"), vec![path(&load)]].concat())?;
            }
            DemoLoad::Bursts => {
                say(
                    "The load: bursts of requests, each a little larger than the one before. When does the storage saturate?",
                );
                // The later bursts saturate any storage.
                let shape = format!(
                    "--growth 100 --width 100ms --duration {}ms --span {}",
                    self.seconds.0 / 1_000_000,
                    self.size
                );
                run_own(program, &[words("generate bursts"), vec![path(&load)], words(&shape)].concat())?;
            }
        }
        say("The target: a file filled with incompressible data.");
        let is_known = fill(&target, self.size)?;
        say("The replay: each request at its scheduled time, with direct I/O.");
        let on = [words("--target"), vec![path(&target)], words("--output"), vec![path(&run)]].concat();
        // A file that cannot carry the mark of a target needs --force; it was created above.
        let force = if is_known { "" } else { "--force" };
        // Other programs must not spoil the first picture.
        let before_others = if isolate::is_available() { "--isolate=priority" } else { "" };
        run_own(program, &[words("replay"), vec![path(&load)], on, words(force), words(before_others)].concat())?;
        let opens = if self.open { "--open" } else { "" };
        say("The report: pictures and a page.");
        report(program, &[vec![path(&run)], words("--format png --out"), vec![path(&pictures)]].concat())?;
        report(program, &[vec![path(&run)], words("--out"), vec![path(&self.out)], words(opens)].concat())?;
        let verdict = verdict_of(&run)?;
        out!("{}", closing(self.load, &self.out, &pictures, verdict.as_ref()).trim_end());
        Ok(ExitCode::SUCCESS)
    }
}

/// Splits a part of a command line at spaces; paths, which may have spaces, are added separately.
fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn path(path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

fn say(text: &str) {
    out!("\n{text}");
}

fn show(arguments: &[OsString]) {
    let line: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    out!("$ iosonar {}", line.join(" "));
}

/// Runs a subcommand of this binary in this process.
fn run_own(program: &Program, arguments: &[OsString]) -> Result<()> {
    show(arguments);
    let typed = [OsString::from("iosonar")].into_iter().chain(arguments.iter().cloned());
    let code = (program.run)(typed.collect())?;
    if code != ExitCode::SUCCESS {
        bail!("`iosonar {}` failed; the demo stops here", arguments[0].to_string_lossy());
    }
    Ok(())
}

/// Runs `iosonar-report`.
fn report(program: &Program, arguments: &[OsString]) -> Result<()> {
    show(&[words("report"), arguments.to_vec()].concat());
    let status = external::command(OsStr::new("report"), program)?
        .args(arguments)
        .status()
        .context("cannot run iosonar-report")?;
    if !status.success() {
        bail!("iosonar report failed ({status}); the result of the replay is complete");
    }
    Ok(())
}

/// Creates a file of so many random bytes, or reuses that of an earlier demo. Refuses an existing file without the mark of a
/// target. Returns whether the file has the mark: not every file system can store it.
fn fill(path: &Path, bytes: u64) -> Result<bool> {
    let trouble = || format!("cannot fill {} with {} MiB", path.display(), bytes / MIB);
    if let Ok(earlier) = File::open(path) {
        if !content::is_marked(&earlier).with_context(trouble)? {
            bail!(
                "{0} exists, but not from a demo: remove it (rm {0}), or choose another directory with --out",
                path.display()
            );
        }
        if earlier.metadata().with_context(trouble)?.len() == bytes {
            out!("{}: kept from an earlier demo", path.display());
            return Ok(true);
        }
    }
    // Renamed when complete, because a later demo reuses a file of that name.
    let partial = path.with_extension("being-filled");
    let mut file = File::create(&partial).with_context(trouble)?;
    let mut data = Payload::new(&DataSpec::RANDOM, bytes);
    let mut piece = vec![0; MIB as usize];
    let style = ProgressStyle::with_template("[{bar:40}] {bytes} of {total_bytes} · {bytes_per_sec} · {eta} left");
    let bar = ProgressBar::new(bytes).with_style(style.expect("a valid template").progress_chars("=> "));
    for number in 0..bytes / MIB {
        data.fill_at(number * MIB, &mut piece);
        file.write_all(&piece).with_context(trouble)?;
        bar.inc(MIB);
    }
    file.sync_all().with_context(trouble)?;
    bar.finish_and_clear();
    content::mark(&file);
    fs::rename(&partial, path).with_context(trouble)?;
    out!("{}: {} MiB", path.display(), bytes / MIB);
    Ok(content::is_marked(&file).unwrap_or(false))
}

/// The verdict in the run's footer.
fn verdict_of(run: &Path) -> Result<Option<Verdict>> {
    let opened = iosonar_trace::open(run).with_context(|| format!("cannot read {}", run.display()))?;
    let Opened::Run(rows) = opened else { return Ok(None) };
    let statistics = rows.metadata().run.as_ref().and_then(|run| run.statistics.known());
    Ok(statistics.and_then(|statistics| statistics.verdict()).cloned())
}

/// The closing text: how to read the pictures, and whether the run was faithful.
fn closing(load: DemoLoad, directory: &Path, pictures: &Path, verdict: Option<&Verdict>) -> String {
    let seen = match load {
        DemoLoad::Natural => [
            "The writes form columns, one for each busy phase of the database. The flushes",
            "(green) lie above them: each waits until the data is durable.",
        ],
        DemoLoad::Bursts => {
            ["Each burst is a column; where a column grows upwards, requests queued behind", "earlier ones."]
        }
    };
    let seen = seen.map(|line| format!("{:25}{line}", "")).join("\n");
    let is_faithful = verdict.is_none_or(Verdict::is_faithful);
    let delays = if is_faithful {
        "the delay of each request: issue - scheduled time. Low: the latencies are the storage's
                         own. A rising wall: the load asked for more than the queue depth."
    } else {
        "the delay of each request: issue - scheduled time. Here this machine, not its
                         storage, delayed many of them."
    };
    format!(
        "
{judgement}
The pictures are in {pictures}. Look first at

  …latency.realtime.png  the sonar diagram: a dot for each request, latency over issue time.
{seen}
  …delay.setpoint.png    {delays}
  …overview.thrp.png     demand and throughput. Where the lines part, the storage was saturated.

The page {directory}/{name}.report.html has the numbers, and diagrams to zoom into.
`rm -r {directory}` removes the demo. Next, replay a load of your own: `iosonar replay --help`.
",
        judgement = judgement(verdict),
        pictures = pictures.display(),
        directory = directory.display(),
        name = load.name(),
    )
}

/// Whether the run was faithful, and otherwise what to try.
fn judgement(verdict: Option<&Verdict>) -> String {
    let Some(verdict) = verdict else { return String::new() };
    if verdict.is_faithful() {
        return format!("{} The pictures show the storage.\n", verdict.sentence);
    }
    let mut text = format!(
        "{}\nThe pictures show a disturbed run and say little about the storage. Try, in this order:\n",
        verdict.sentence
    );
    for (remedy, number) in verdict.remedies.iter().zip(1..) {
        let _ = writeln!(text, "  {number}. {} (costs: {})", remedy.what, remedy.costs);
    }
    text
}

#[cfg(test)]
mod tests {
    use iosonar_trace::run_info::{Part, Remedy};

    use super::*;

    fn verdict(faithful: bool) -> Verdict {
        let none = Part { requests: 0, delay_us: None, within_pct: None };
        let remedy = Remedy { what: "--wait hybrid".into(), costs: "a little".into() };
        Verdict {
            kept_times: None,
            faithful: Some(faithful),
            sentence: format!("This replay was {}faithful.", if faithful { "" } else { "not " }),
            own: none,
            device: none,
            late: Vec::new(),
            worst: Vec::new(),
            remedies: if faithful { Vec::new() } else { vec![remedy] },
        }
    }

    #[test]
    fn an_unfaithful_run_is_described_as_disturbed() {
        let say = |verdict: &Verdict| closing(DemoLoad::Natural, "demo".as_ref(), "demo/p".as_ref(), Some(verdict));
        let (good, bad) = (say(&verdict(true)), say(&verdict(false)));
        assert!(good.contains("was faithful. The pictures show the storage."), "{good}");
        assert!(good.contains("the latencies are the storage's") && !good.contains("costs"), "{good}");
        assert!(bad.contains("was not faithful.\nThe pictures show a disturbed run"), "{bad}");
        assert!(
            bad.contains("  1. --wait hybrid (costs: a little)") && !bad.contains("the latencies are the storage's"),
            "{bad}"
        );
    }
}
