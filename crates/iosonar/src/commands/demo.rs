//! `iosonar demo`: the whole way from a load to its pictures, on a file of its own.
//!
//! It runs the commands that a user would type, through the same definition of the command line, and shows them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::external;
use crate::told::answer;

const MIB: u64 = 1 << 20;

/// What `--load natural` replays: it comes with the binary, because an installed one has no folder of loads beside it.
const NATURAL: &[u8] = include_bytes!("../../../../loads/sqlite.load.parquet");

/// See it work: replay a load on a file of its own, and draw what happened
#[derive(clap::Args)]
#[command(after_help = "\
No device is touched: the target is a file in DIR, filled with data that can't be compressed.

Examples:
  iosonar demo                                        what SQLite asked of its disk, in 12 seconds
  iosonar demo --load bursts                          more and more, until the storage gives in
  iosonar demo --out /mnt/disk/demo                   on the disk that is mounted there")]
pub struct Args {
    /// The folder for the load, the target, the result and the pictures
    #[arg(long, value_name = "DIR", default_value = "demo")]
    out: PathBuf,
    /// The size of the target
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    size: u64,
    /// What is replayed
    #[arg(long, value_enum, default_value_t = DemoLoad::Natural)]
    load: DemoLoad,
    /// How long the bursts last
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DemoLoad {
    /// Recorded from a real program: SQLite with single-row transactions, queries, an index and VACUUM
    Natural,
    /// Made up: bursts of requests, each a little larger than the one before
    Bursts,
}

impl DemoLoad {
    /// What its files are called.
    fn name(self) -> &'static str {
        match self {
            Self::Natural => "sqlite",
            Self::Bursts => "bursts",
        }
    }
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        // Whether the end can be reached is better known at the beginning.
        external::command(OsStr::new("report"))?;
        let pictures = self.out.join("pictures");
        fs::create_dir_all(&pictures).with_context(|| format!("can't make the folder {}", pictures.display()))?;
        let name = self.load.name();
        let load = self.out.join(format!("{name}.load.parquet"));
        let run = self.out.join(format!("{name}.replay.parquet"));
        let target = self.out.join("target");
        for earlier in [&load, &run] {
            if earlier.exists() {
                fs::remove_file(earlier).with_context(|| format!("can't remove {}", earlier.display()))?;
            }
        }

        match self.load {
            DemoLoad::Natural => {
                say("What a database asked of its disk: a recording of SQLite that comes with iosonar.");
                fs::write(&load, NATURAL).with_context(|| format!("can't write {}", load.display()))?;
                run_own(&[words("info"), vec![path(&load)]].concat())?;
            }
            DemoLoad::Bursts => {
                say("Bursts of requests, each a little larger than the one before: when will the storage give in?");
                // So many at once, in the later bursts, that any storage will have to let some wait.
                let shape = format!("--growth 100 --width 100ms --duration {}s --span {}M", self.seconds, self.size);
                run_own(&[words("generate bursts"), vec![path(&load)], words(&shape)].concat())?;
            }
        }
        say("A file to replay it on, filled with data that can't be compressed.");
        fill(&target, self.size * MIB)?;
        say("Every request at its time, with direct I/O.");
        let on = [words("--target"), vec![path(&target)], words("--output"), vec![path(&run)]].concat();
        run_own(&[words("replay"), vec![path(&load)], on].concat())?;
        say("What happened, in pictures and as a page.");
        report(&[vec![path(&run)], words("--format png --out"), vec![path(&pictures)]].concat())?;
        report(&[vec![path(&run)], words("--out"), vec![path(&self.out)]].concat())?;
        answer!("{}", closing(self.load, &self.out, &pictures).trim_end());
        Ok(ExitCode::SUCCESS)
    }
}

/// The words of a command line, but for paths, which may have spaces.
fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn path(path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

fn say(text: &str) {
    answer!("\n{text}");
}

fn show(arguments: &[OsString]) {
    let line: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    answer!("$ iosonar {}", line.join(" "));
}

/// Runs a subcommand of this binary as if it had been typed.
fn run_own(arguments: &[OsString]) -> Result<()> {
    show(arguments);
    let typed = [OsString::from("iosonar")].into_iter().chain(arguments.iter().cloned());
    let code = crate::Cli::try_parse_from(typed).context("the demo and the command line disagree")?.command.run()?;
    if code != ExitCode::SUCCESS {
        bail!("`iosonar {}` did not end well; the demo stops here", arguments[0].to_string_lossy());
    }
    Ok(())
}

/// Runs the Python half's report.
fn report(arguments: &[OsString]) -> Result<()> {
    show(&[words("report"), arguments.to_vec()].concat());
    let status =
        external::command(OsStr::new("report"))?.args(arguments).status().context("can't run iosonar-report")?;
    if !status.success() {
        bail!("iosonar report failed ({status}); the result is whole all the same");
    }
    Ok(())
}

/// Makes a file of so many random bytes, unless it is there from an earlier demo.
fn fill(path: &Path, bytes: u64) -> Result<()> {
    if path.metadata().is_ok_and(|found| found.is_file() && found.len() == bytes) {
        answer!("{} is there from an earlier demo", path.display());
        return Ok(());
    }
    let trouble = || format!("can't fill {} with {} MiB", path.display(), bytes / MIB);
    // It gets its name when it is full: a later demo trusts what it finds.
    let half_full = path.with_extension("being-filled");
    let mut file = File::create(&half_full).with_context(trouble)?;
    let mut chance = fastrand::Rng::with_seed(bytes);
    let mut piece = vec![0; MIB as usize];
    let style = ProgressStyle::with_template("[{bar:40}] {bytes} of {total_bytes} · {bytes_per_sec} · {eta} left");
    let bar = ProgressBar::new(bytes).with_style(style.expect("a valid template").progress_chars("=> "));
    for _ in 0..bytes / MIB {
        chance.fill(&mut piece);
        file.write_all(&piece).with_context(trouble)?;
        bar.inc(MIB);
    }
    file.sync_all().with_context(trouble)?;
    bar.finish_and_clear();
    fs::rename(&half_full, path).with_context(trouble)?;
    answer!("{}: {} MiB", path.display(), bytes / MIB);
    Ok(())
}

fn closing(load: DemoLoad, folder: &Path, pictures: &Path) -> String {
    let seen = match load {
        DemoLoad::Natural => [
            "Writes gather in columns, one for each time that the database was busy. Flushes",
            "(green) lie above them: they wait until what was written is durable.",
        ],
        DemoLoad::Bursts => {
            ["The bursts stand as columns; where they grow upwards, requests waited for those", "before them."]
        }
    };
    let seen = seen.map(|line| format!("{:25}{line}", "")).join("\n");
    format!(
        "
The pictures are in {pictures}, named by interest. Look first at

  …latency.realtime.png  the sonar diagram. Each request is a dot: when it was issued, and how long it took.
{seen}
  …delay.setpoint.png    how late each request was issued. Low: the latencies are the storage's own. A rising
                         wall: more was asked for than could be in flight.
  …overview.thrp.png     what was asked for and what was delivered. Where the lines part, the storage was saturated.

The page {folder}/{name}.report.html says the same in words and numbers, with diagrams to zoom into.
All of it is in {folder}; `rm -r {folder}` removes it. Now try a load of your own: `iosonar replay --help`.
",
        pictures = pictures.display(),
        folder = folder.display(),
        name = load.name(),
    )
}
