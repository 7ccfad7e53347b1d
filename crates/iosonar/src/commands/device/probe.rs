//! `iosonar device probe`: whether storage suppresses zeros, compresses, or deduplicates.

use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use iosonar_device::probe::{Answer, Answers, COMPRESSIBLE, Data, Estimate, MIN_ROUNDS, Plan, Real, Space, probe};
use iosonar_device::sweep::Progress;
use iosonar_device::{Access, Device, Kind};
use iosonar_pacing::clock;
use iosonar_trace::params::{parse_sectors, whole_number};
use iosonar_trace::{SECTOR_BYTES, Sectors, path_text};
use serde_json::{Value, json};

use super::sweeping;
use crate::console::{answer_json, out, status};
use crate::usage::misuse;
use crate::{exit, human};

/// Measure whether a device or file suppresses zeros, compresses, or deduplicates
///
/// DESTROYS DATA in the first --size bytes. Refuses what `iosonar device wipe` refuses.
///
/// Overwrites random data with zeros, with compressible data, and with copies, in rounds of random order. Compares how much is
/// stored, where something tells, and how fast it is written and read, with random data of the same round.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo iosonar device probe /dev/sdb
  sudo iosonar device probe /dev/sdb --rounds 30 --size 4G       narrower intervals
  sudo iosonar device probe /dev/zvol/tank/v --space 'zfs get -Hpo value used tank/v'
  iosonar device probe test.img --page-cache --json              as programs without direct I/O

The space is that of zram, or of a file, also of one behind a loop device, or what --space prints.

Ctrl-C ends it. Exit codes: 0 success, 1 failure, 2 wrong command line, 5 cut short.")]
pub struct Args {
    /// The block device, or regular file
    device: PathBuf,
    /// Overwrite at most so much, from its beginning on
    #[arg(long, value_name = "LENGTH", default_value = "256M", value_parser = parse_sectors, allow_hyphen_values = true)]
    size: Sectors,
    /// Rounds of measurements
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole_number::<u32>(u64::from(MIN_ROUNDS)..=1000))]
    #[arg(allow_hyphen_values = true)]
    rounds: u32,
    /// A shell command that prints the bytes that the storage uses
    #[arg(long, value_name = "COMMAND")]
    space: Option<String>,
    /// Write a file through the page cache, instead of by direct I/O, which some file systems do not compress
    #[arg(long)]
    page_cache: bool,
    /// Overwrite a device with a file system, LVM, RAID or partitions, or a file with data
    #[arg(long)]
    force: bool,
    /// Print a JSON object (see docs/devices.md)
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let device = Device::open(&self.device, if self.force { Access::Force } else { Access::Overwrite })?;
        let shown = self.device.display();
        let all = device.geometry.sectors * SECTOR_BYTES;
        let Some(plan) = Plan::new(self.size.bytes().min(all), self.rounds) else {
            let least = human::block(Plan::least(self.rounds));
            let what = if all < self.size.bytes() { "a larger device, or fewer --rounds" } else { "a larger --size" };
            misuse!("{} rounds need {least}; use {what}", self.rounds);
        };
        if self.page_cache && device.kind != Kind::File {
            misuse!("--page-cache is for files; leave it out for a device");
        }
        let space = self.space(&device)?;
        let buffered = device.open_again(File::options().read(true).write(true)).with_context(|| format!("{shown}"));
        let buffered = if self.page_cache { Some(buffered?) } else { None };
        let what = space.as_ref().map_or_else(|| "times alone".into(), |space| format!("times, and {}", space.name()));
        status!("{shown}: overwriting its first {}; measuring {what}", human::block(plan.bytes()));
        if let Some(reader) = &device.reader {
            status!("warning: {shown}: {reader}, and will see the content change");
        }
        device.mark();

        let progress = Arc::new(Progress::default());
        let _handler = sweeping::stop_on_signals(&progress)?;
        let is_of_files = space.as_ref().is_some_and(Space::is_of_files);
        let name = space.as_ref().map(Space::name);
        let mut storage = Real { file: buffered.as_ref().unwrap_or(&device.file), space };
        let seed = clock::wall().0 as u64;
        let measure = || probe(&mut storage, plan, seed, &progress);
        let rounds = sweeping::with_bar(plan.work(), &progress, measure).with_context(|| format!("{shown}"))?;
        let Some(rounds) = rounds else {
            status!("{shown}: cut short: its first {} are partly overwritten", human::block(plan.bytes()));
            return Ok(ExitCode::from(exit::CUT_SHORT));
        };
        let answers = Answers::new(&rounds, plan);
        if self.json {
            answer_json(&self.object(plan, name.as_deref(), &answers))?;
        } else {
            out!("{}", text(&answers, is_of_files).trim_end());
        }
        Ok(ExitCode::SUCCESS)
    }

    fn space(&self, device: &Device) -> Result<Option<Space>> {
        let Some(command) = &self.space else { return Ok(Space::of(device)) };
        let space = Space::Command(command.clone());
        if space.used().is_none() {
            bail!("`{command}` of --space failed, or did not print a whole number of bytes");
        }
        Ok(Some(space))
    }

    fn object(&self, plan: Plan, space: Option<&str>, answers: &Answers) -> Value {
        let data = answers.data.iter().map(|one| {
            let [write, read] = one.speed;
            json!({
                "data": one.data.name(),
                "stored_share": one.stored.map(|stored| stored.mean),
                "stored_share_95": one.stored.map(|stored| stored.interval),
                "write_bytes_per_s": one.bytes_per_s[0],
                "write_factor": write.mean,
                "write_factor_95": write.interval,
                "read_bytes_per_s": one.bytes_per_s[1],
                "read_factor": read.mean,
                "read_factor_95": read.interval,
            })
        });
        json!({
            "path": path_text(&self.device),
            "bytes": plan.bytes(),
            "rounds": plan.rounds,
            "piece_bytes": plan.piece,
            "page_cache": self.page_cache,
            "space": space,
            "compressible_pct": COMPRESSIBLE,
            "suppresses_zeros": answers.suppresses_zeros,
            "compresses": answers.compresses,
            "deduplicates": answers.deduplicates,
            "data": data.collect::<Vec<_>>(),
        })
    }
}

fn text(answers: &Answers, is_of_files: bool) -> String {
    let mut text = format!("{:<14} {:>22} {:>28} {:>28}\n", "data", "stored", "written", "read");
    for one in &answers.data {
        let is_base = one.data == Data::Random;
        let stored = match one.stored {
            None => "unknown".into(),
            Some(_) if is_base => "100 %".into(),
            Some(stored) => shares(stored),
        };
        let [write, read] = [0, 1].map(|way| match is_base {
            true => format!("{}/s", human::bytes(one.bytes_per_s[way] as u64)),
            false => factors(one.speed[way]),
        });
        _ = writeln!(text, "{:<14} {stored:>22} {write:>28} {read:>28}", one.data.name());
    }
    text += "(means with intervals of 95 % confidence, beside random data)\n\n";
    let answers_and_data = [
        ("suppresses zeros", answers.suppresses_zeros, 1),
        ("compresses", answers.compresses, 2),
        ("deduplicates", answers.deduplicates, 3),
    ];
    for (question, answer, kind) in answers_and_data {
        let one = &answers.data[kind];
        let is_zeros = one.data == Data::Zeros;
        let what = match one.data {
            Data::Compressible => format!("data that is {COMPRESSIBLE} % compressible"),
            data => data.name().to_owned(),
        };
        let takes = one.stored.map(|stored| format!("{what}: {} stored", human::percent(stored.mean.max(0.0))));
        let is_compressed = is_zeros && answer == Answer::No && answers.compresses == Answer::Yes;
        let said = match (answer, takes) {
            (Answer::Yes, Some(takes)) => format!("yes ({takes})"),
            (Answer::No, Some(takes)) if is_compressed => format!("no, it compresses them ({takes})"),
            (Answer::No, Some(takes)) => format!("no ({takes})"),
            (Answer::Likely, _) => format!("likely: {what} are faster than random data"),
            (_, Some(takes)) => format!("unknown: the interval is too wide ({takes}); use more --rounds"),
            (_, None) => "unknown: nothing tells the space, and times do not differ; see --space".to_owned(),
        };
        _ = writeln!(text, "{question:<17} {said}");
    }
    if is_of_files {
        text += "\nThis is what the file system stores; of the storage below only times tell.\n";
    }
    text
}

/// `25.1 % (24.9 to 25.3)`.
fn shares(found: Estimate) -> String {
    let percent = |share: f64| format!("{:.1}", (share * 100.0).max(0.0));
    let [low, high] = found.interval.map(percent);
    format!("{} % ({low} to {high})", percent(found.mean))
}

/// `1.25 times (1.20 to 1.31)`.
fn factors(found: Estimate) -> String {
    let [low, high] = found.interval;
    format!("{:.2} times ({low:.2} to {high:.2})", found.mean)
}
