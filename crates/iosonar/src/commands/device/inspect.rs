//! `iosonar device inspect`: properties and content of a target.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use iosonar_device::Kind;
use iosonar_device::inspect::{Inspection, inspect};
use iosonar_device::sample::{Bounds, ZeroSample};
use iosonar_replay::advice::before;
use iosonar_trace::params::whole_number;
use iosonar_trace::run_info::Queue;

use crate::human::percent;
use crate::{console, duration, human};

/// Show size, blocks, queue, caches, users and content of a device or file, and its share of zeros
///
/// Changes nothing; the device may be in use. Random samples estimate the share of zeros: reads of areas never
/// written are too fast for a measurement.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo iosonar device inspect /dev/sdb
  sudo iosonar device inspect /dev/sdb --json | jq .sample.zero_share
  sudo iosonar device inspect /dev/sdb --samples 100000 --time 5m")]
pub struct Args {
    /// The block device or regular file
    device: PathBuf,
    /// Read at most this many samples of 4 KiB; 0 reads none
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = whole_number::<u64>(0..=10_000_000))]
    #[arg(allow_hyphen_values = true)]
    samples: u64,
    /// Read samples for at most this time
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    time: Duration,
    /// Print a JSON object (see docs/devices.md)
    #[arg(long)]
    json: bool,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let found = inspect(&self.device, Bounds { samples: self.samples, time: self.time })?;
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", console::json(&found)?)?;
        } else {
            out.write_all(for_people(&found).as_bytes())?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn for_people(found: &Inspection) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            _ = writeln!(text, "{name:<12} {}", console::one_line(&value));
        }
    };
    line("target", found.path.display().to_string());
    line("is", what(found));
    line("size", format!("{} ({} sectors)", human::block(found.bytes), human::count(found.sectors)));
    if let Some(mount) = &found.mount {
        line(
            "stored on",
            format!("{} of {}, mounted on {} ({})", mount.file_system, mount.source, mount.place, mount.options),
        );
    }
    line("in use", if found.users.is_empty() { "no".into() } else { found.users.join("; ") });
    line("read-only", if found.read_only { "yes: a replay cannot write to it".into() } else { String::new() });
    line(
        "content",
        match (&found.signatures, &found.signatures_unknown) {
            (Some(found), _) if found.is_empty() => "no file system, LVM, RAID or partitions".into(),
            (Some(found), _) => found.join(", "),
            (None, why) => format!("unknown: {}", why.as_deref().unwrap_or_default()),
        },
    );
    if let Some(queue) = &found.queue {
        of_queue(queue, &mut line);
    }
    if let (Some(holes), Some(allocated)) = (&found.holes, found.allocated_bytes) {
        let share = human::percent_of(holes.bytes, found.bytes);
        let holes = match holes.count {
            0 => "none".into(),
            1 => format!("1, {share} of the file"),
            n => format!("{}, {share} of the file", human::count(n)),
        };
        line("holes", format!("{holes}; {} are allocated", human::block(allocated)));
    }
    if let Some(why) = &found.unreadable {
        line("zeros", format!("unknown: cannot read it: {why}"));
    }
    if let Some(seen) = &found.sample {
        of_sample(seen, &mut line);
    }
    for note in notes(found) {
        line("note", note);
    }
    text
}

fn what(found: &Inspection) -> String {
    let Some(disk) = &found.disk else { return "a regular file".into() };
    let name = match (found.kind, disk.is_partition) {
        (Kind::File | Kind::None, _) => return format!("a regular file, on the disk {}", disk.name),
        (Kind::Block, true) => format!("a partition of {}", disk.name),
        (Kind::Block, false) => format!("the disk {}", disk.name),
    };
    let model = disk.model.as_ref().map_or(String::new(), |model| format!(", {model}"));
    let behind = disk.backing_file.as_ref().map_or(String::new(), |file| format!(", a loop device over {file}"));
    name + &model + &behind
}

fn of_queue(queue: &Queue, line: &mut impl FnMut(&str, String)) {
    let kib = |value: Option<u64>| value.map_or("?".into(), |kib| human::block(kib << 10));
    let number = |value: Option<u64>| value.map_or("?".into(), human::count);
    let bytes = |value: Option<u64>| value.map_or("?".into(), human::block);
    let most = |value: Option<u64>| match value {
        Some(0) => "none".to_owned(),
        Some(bytes) => format!("up to {}", human::block(bytes)),
        None => "?".to_owned(),
    };
    line(
        "blocks",
        format!("{} logical, {} physical", bytes(queue.logical_block_bytes), bytes(queue.physical_block_bytes)),
    );
    if let Some(active) = &queue.scheduler {
        let others: Vec<&str> = queue.schedulers.iter().map(String::as_str).filter(|name| name != active).collect();
        let others = if others.is_empty() { String::new() } else { format!("; available: {}", others.join(", ")) };
        line("scheduler", format!("{active}{others}"));
    }
    let medium = match queue.rotational {
        Some(true) => "reports rotational",
        Some(false) => "reports non-rotational",
        None => "",
    };
    line("medium", medium.into());
    line("write cache", queue.write_cache.clone().unwrap_or_default());
    line(
        "requests",
        format!(
            "up to {} (max_sectors_kb; hardware limit {}), {} queued (nr_requests)",
            kib(queue.max_sectors_kb),
            // The kernel reports no limit as a huge number.
            if queue.max_hw_sectors_kb.is_some_and(|kib| kib >= 1 << 30) {
                "none".into()
            } else {
                kib(queue.max_hw_sectors_kb)
            },
            number(queue.nr_requests)
        ),
    );
    line(
        "discards",
        format!("{}; write zeroes: {}", most(queue.discard_max_bytes), most(queue.write_zeroes_max_bytes)),
    );
    let throttling = match queue.wbt_lat_usec {
        None => "none".into(),
        Some(0) => "off".into(),
        Some(us) => format!("of writeback, for a read latency of at most {us} µs (wbt_lat_usec)"),
    };
    line("throttling", throttling);
}

fn of_sample(seen: &ZeroSample, line: &mut impl FnMut(&str, String)) {
    if seen.samples == 0 {
        line("all zero", format!("unknown: no sample could be read ({} errors)", human::count(seen.errors)));
        return;
    }
    let [low, high] = seen.zero_share_95;
    let size = human::block(seen.block_bytes);
    line(
        "all zero",
        if seen.exact {
            format!("{} (all {} blocks of {size} read)", percent(seen.zero_share), human::count(seen.samples))
        } else {
            format!(
                "about {}, between {} and {} with 95 % confidence ({} of {} samples of {size})",
                percent(seen.zero_share),
                percent(low),
                percent(high),
                human::count(seen.zero),
                human::count(seen.samples)
            )
        },
    );
    line("where", format!("[{}]  # data, . zero, + both", seen.map));
    if let (Some(zero), Some(data)) = (seen.zero_us, seen.data_us) {
        line(
            "read in",
            format!("{} for zeros, {} for data (medians)", human::span(zero / 1e6), human::span(data / 1e6)),
        );
    }
    if seen.errors > 0 {
        line(
            "errors",
            format!("{} could not be read; `iosonar device slurp` finds where", human::counted(seen.errors, "sample")),
        );
    }
}

/// Warnings about a replay on it.
fn notes(found: &Inspection) -> Vec<String> {
    let (disk, queue) = (found.disk.as_ref(), found.queue.as_ref());
    let scheduler = disk.zip(queue).and_then(|(disk, queue)| before::schedulers([(disk.name.as_str(), queue)]));
    let zero = found.sample.as_ref().and_then(|seen| before::never_written(&found.path, seen));
    scheduler.into_iter().chain(zero).collect()
}
