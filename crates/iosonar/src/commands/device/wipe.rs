//! `iosonar device wipe`: fills a device or file with data that the storage can neither compress nor deduplicate.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use iosonar_device::passes::Wipe;
use iosonar_device::sweep::{self, Progress, Swept, sweep};
use iosonar_device::{Access, Device, Kind};
use iosonar_pacing::clock;
use iosonar_trace::{SECTOR_BYTES, Sectors};
use iosonar_workload::region::Region;

use super::sweeping;
use crate::console::{out, status};
use crate::usage::misuse;
use crate::{exit, human};

/// Fill a device or file, or a part of it, with random data, so that every block has been written
///
/// DESTROYS ALL DATA there. Refuses a device or file that is mounted or otherwise in use. Needs --force for one with a file
/// system, LVM, RAID or partitions, and for a file with data.
///
/// The data is incompressible and has no duplicate blocks, not even in the next wipe.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo iosonar device wipe /dev/sdb
  fallocate -l 10G test.img && iosonar device wipe test.img
  sudo iosonar device wipe /dev/sdb --share 40%       a device that is 40 % full
  sudo iosonar device wipe /dev/sdb --range 4G..8G    its fifth to eighth GiB; shares are 10%..30%

Ctrl-C ends it and shows how far it got. Exit codes: 0 success, 1 failure, 2 wrong command line,
4 parts of the device could not be written, 5 cut short.")]
pub struct Args {
    /// The block device, or regular file; a file keeps its size
    device: PathBuf,
    /// Fill this share of it, from its beginning
    #[arg(long, value_name = "SHARE", value_parser = parse_share, conflicts_with = "range")]
    share: Option<Region>,
    /// Fill this part: lengths or shares; without TO up to the end
    #[arg(long, value_name = "FROM..TO", value_parser = parse_range, allow_hyphen_values = true)]
    range: Option<Region>,
    /// Overwrite a device with a file system, LVM, RAID or partitions, or a file with data
    #[arg(long)]
    force: bool,
}

fn parse_share(text: &str) -> Result<Region, String> {
    match text.strip_suffix('%') {
        Some(_) => Region::parse(text),
        None => Err(format!("`{text}` is not a share; say for example 40%, or use --range")),
    }
}

fn parse_range(text: &str) -> Result<Region, String> {
    match text.split_once("..") {
        Some(_) => Region::parse(text),
        None => Err(format!("`{text}` is not a range; say for example 4G..8G, 10%..30%, or 4G..")),
    }
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let device = Device::open(&self.device, if self.force { Access::Force } else { Access::Overwrite })?;
        let signatures = device.signatures();
        let shown = self.device.display();
        let range = self.part(&device)?;
        let bytes = range.end - range.start;
        let content = if signatures.is_empty() { String::new() } else { format!(" with {}", signatures.join(", ")) };
        let all = size(&device)?;
        let part = match range {
            _ if bytes == all => "all of it".to_owned(),
            Range { start: 0, .. } => format!("its first {}", human::block(bytes)),
            Range { start, .. } => format!("{} from sector {} on", human::block(bytes), start / SECTOR_BYTES),
        };
        status!("{shown}: {}{content}; overwriting {part} with random data", human::block(all));

        if let Some(reader) = &device.reader {
            status!("warning: {shown}: {reader}, and will see the content change");
        }
        device.mark();

        let progress = Arc::new(Progress::default());
        let _handler = sweeping::stop_on_signals(&progress)?;
        let swept = sweeping::with_bar(bytes, &progress, || fill(&device, range.clone(), &progress))?;
        sweeping::failures(&swept).lines().for_each(|line| status!("{line}"));
        let done = swept.reached - range.start;
        let reached = format!(
            "{} of {} ({}) overwritten; unchanged from sector {} on",
            human::block(done),
            human::block(bytes),
            human::percent_of(done, bytes),
            swept.reached / SECTOR_BYTES
        );
        if let Some(fatal) = &swept.fatal {
            bail!("{shown}: {fatal}; wipe stopped: {reached}");
        }
        if done < bytes {
            status!("{shown}: cut short: {reached}");
            return Ok(ExitCode::from(exit::CUT_SHORT));
        }
        out!("{shown}: {}", sweeping::rate(&swept));
        if swept.failed_bytes > 0 {
            status!("{shown}: {} could not be written", human::block(swept.failed_bytes));
            return Ok(ExitCode::from(exit::REQUESTS_FAILED));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The bytes that are overwritten.
    fn part(&self, device: &Device) -> Result<Range<u64>> {
        let Some(region) = self.share.or(self.range) else { return Ok(0..size(device)?) };
        let option = if self.share.is_some() { "--share" } else { "--range" };
        let (whole, block) = (device.geometry.sectors, device.geometry.block_sectors);
        let (from, length) = match region.of(Sectors(whole)) {
            Ok(part) => part,
            Err(why) => misuse!("{option}: {why}"),
        };
        let to = from + length;
        if let Some(odd) = [from, to].into_iter().find(|sector| sector % block != 0) {
            let block = human::block(block * SECTOR_BYTES);
            misuse!(
                "{option}: byte {} is not the border of a block of {block}; use multiples of {block}",
                odd * SECTOR_BYTES
            );
        }
        // The end of a file may be behind its last whole block.
        let end = if to == whole { size(device)? } else { to * SECTOR_BYTES };
        Ok(from * SECTOR_BYTES..end)
    }
}

/// The size in bytes; that of a file includes its last, partial block.
fn size(device: &Device) -> Result<u64> {
    match device.kind {
        Kind::File => Ok(device.file.metadata()?.len()),
        _ => Ok(device.geometry.sectors * SECTOR_BYTES),
    }
}

/// Writes whole blocks with direct I/O, then the rest of a file behind its last whole block through the page cache, then
/// flushes.
fn fill(device: &Device, range: Range<u64>, progress: &Progress) -> Result<Swept<()>> {
    let seed = clock::wall().0 as u64;
    let block = device.geometry.block_sectors * SECTOR_BYTES;
    let whole = range.end.min(device.geometry.sectors * SECTOR_BYTES);
    let mut swept =
        sweep(range.start..whole, block, sweep::threads(), progress, || Wipe::new(&device.file, seed)).map(drop);
    if swept.reached == whole && whole < range.end {
        let context = || format!("{}: cannot write its last bytes", device.path.display());
        let buffered = device.open_again(File::options().write(true)).with_context(context)?;
        swept = swept.and_then(sweep(whole..range.end, 1, 1, progress, || Wipe::new(&buffered, seed)).map(drop));
    }
    device.file.sync_all().with_context(|| format!("{}: cannot flush its cache", device.path.display()))?;
    Ok(swept)
}
