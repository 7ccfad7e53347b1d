//! `iosonar device wipe`: fills a device or file with data that the storage can neither compress nor deduplicate.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use iosonar_device::passes::Wipe;
use iosonar_device::sweep::{self, Progress, Swept, sweep};
use iosonar_device::{Access, Device, Kind};
use iosonar_pacing::clock;
use iosonar_trace::SECTOR_BYTES;

use super::sweeping;
use crate::console::{out, status};
use crate::{exit, human};

/// Fill a device or file with random data, so that every block of it has been written
///
/// DESTROYS ALL DATA on it. Refuses a device or file that is mounted or otherwise in use. Needs --force for one with a file
/// system, LVM, RAID or partitions, and for a file with data.
///
/// The data is incompressible and has no duplicate blocks, not even in the next wipe.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo iosonar device wipe /dev/sdb
  fallocate -l 10G test.img && iosonar device wipe test.img

Ctrl-C ends it and shows how far it got. Exit codes: 0 success, 1 failure, 2 wrong command line,
4 parts of the device could not be written, 5 cut short.")]
pub struct Args {
    /// The block device, or regular file; a file keeps its size
    device: PathBuf,
    /// Overwrite a device with a file system, LVM, RAID or partitions, or a file with data
    #[arg(long)]
    force: bool,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let device = Device::open(&self.device, if self.force { Access::Force } else { Access::Overwrite })?;
        let signatures = device.signatures();
        let shown = self.device.display();
        let whole = device.geometry.sectors * SECTOR_BYTES;
        let bytes = if device.kind == Kind::File { device.file.metadata()?.len() } else { whole };
        let content = if signatures.is_empty() { String::new() } else { format!(" with {}", signatures.join(", ")) };
        status!("{shown}: {}{content}; overwriting all of it with random data", human::block(bytes));

        if let Some(reader) = &device.reader {
            status!("warning: {shown}: {reader}, and will see the content change");
        }
        device.mark();

        let progress = Arc::new(Progress::default());
        let _handler = sweeping::stop_on_signals(&progress)?;
        let swept = sweeping::with_bar(bytes, &progress, || fill(&device, whole, bytes, &progress))?;
        sweeping::failures(&swept).lines().for_each(|line| status!("{line}"));
        let reached = format!(
            "{} of {} ({}) overwritten; unchanged from sector {} on",
            human::block(swept.reached),
            human::block(bytes),
            human::percent_of(swept.reached, bytes),
            swept.reached / SECTOR_BYTES
        );
        if let Some(fatal) = &swept.fatal {
            bail!("{shown}: {fatal}; wipe stopped: {reached}");
        }
        if swept.reached < bytes {
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
}

/// Writes whole blocks with direct I/O, then the rest of a file behind its last whole block through the page cache, then
/// flushes.
fn fill(device: &Device, whole: u64, bytes: u64, progress: &Progress) -> Result<Swept<()>> {
    let seed = clock::wall().0 as u64;
    let block = device.geometry.block_sectors * SECTOR_BYTES;
    let mut swept = sweep(0..whole, block, sweep::threads(), progress, || Wipe::new(&device.file, seed)).map(drop);
    if swept.reached == whole && whole < bytes {
        let context = || format!("{}: cannot write its last bytes", device.path.display());
        let buffered = device.open_again(File::options().write(true)).with_context(context)?;
        swept = swept.and_then(sweep(whole..bytes, 1, 1, progress, || Wipe::new(&buffered, seed)).map(drop));
    }
    device.file.sync_all().with_context(|| format!("{}: cannot flush its cache", device.path.display()))?;
    Ok(swept)
}
