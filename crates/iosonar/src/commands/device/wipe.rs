//! `iosonar device wipe`: fills a device or file with data that nothing can save itself from storing.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use iosonar_replay::clock;
use iosonar_replay::device::passes::Wipe;
use iosonar_replay::device::sweep::{self, Progress, Swept, sweep};
use iosonar_replay::device::{Access, Device, Kind, safety};
use iosonar_trace::SECTOR_BYTES;

use super::sweeping;
use crate::told::tell;
use crate::{exit, human};

/// Fill a device or file with random data, so that no area of it was never written
///
/// DESTROYS DATA: everything on it. What is mounted or otherwise in use is always refused; what carries a file system,
/// LVM, RAID or partitions only goes with --force.
///
/// The data can't be compressed, and no block of it comes twice, on the device or in the next wipe.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo iosonar device wipe /dev/sdb
  fallocate -l 10G test.img && iosonar device wipe test.img

Ctrl-C ends it and says how far it was. Exit codes: 0 done, 1 could not be done, 4 parts of the
device could not be written, 5 cut short.")]
pub struct Args {
    /// The block device, or the regular file, which keeps its size
    device: PathBuf,
    /// Overwrite what carries a file system, LVM, RAID or partitions
    #[arg(long)]
    force: bool,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let carried = safety::signatures(&self.device).unwrap_or_default();
        let device = Device::open(&self.device, if self.force { Access::Force } else { Access::Overwrite })?;
        let shown = self.device.display();
        let whole = device.geometry.sectors * SECTOR_BYTES;
        let bytes = if device.kind == Kind::File { device.file.metadata()?.len() } else { whole };
        let carrying = if carried.is_empty() { String::new() } else { format!(" with {}", carried.join(", ")) };
        tell!("{shown}: {}{carrying}; all of it is overwritten with random data", human::block(bytes));

        let progress = Arc::new(Progress::default());
        sweeping::stop_on_signals(&progress)?;
        let swept = sweeping::with_bar(bytes, &progress, || fill(&device, whole, bytes, &progress))?;
        sweeping::failures(&swept).lines().for_each(|line| tell!("{line}"));
        let reached = format!(
            "{} of {} ({:.1} %) hold new data; from sector {} on it is as it was",
            human::block(swept.reached),
            human::block(bytes),
            100.0 * swept.reached as f64 / bytes as f64,
            swept.reached / SECTOR_BYTES
        );
        if let Some(fatal) = &swept.fatal {
            bail!("{shown}: {fatal}; the wipe ended there: {reached}");
        }
        if swept.reached < bytes {
            tell!("{shown}: cut short: {reached}");
            return Ok(ExitCode::from(exit::CUT_SHORT));
        }
        writeln!(io::stdout(), "{shown}: {}", sweeping::rate(&swept))?;
        if swept.failed_bytes > 0 {
            tell!("{shown}: {} could not be written", human::block(swept.failed_bytes));
            return Ok(ExitCode::from(exit::REQUESTS_FAILED));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes whole blocks past the page cache, then what a file has behind its last one; then asks for all of it to be kept.
fn fill(device: &Device, whole: u64, bytes: u64, progress: &Progress) -> Result<Swept<()>> {
    let seed = clock::wall().0 as u64;
    let block = device.geometry.block_sectors * SECTOR_BYTES;
    let mut swept = sweep(0..whole, block, sweep::threads(), progress, || Wipe::new(&device.file, seed)).map(drop);
    if swept.reached == whole && whole < bytes {
        let trouble = || format!("{}: its last bytes could not be written", device.path.display());
        let buffered = File::options().write(true).open(&device.path).with_context(trouble)?;
        swept = swept.and_then(sweep(whole..bytes, 1, 1, progress, || Wipe::new(&buffered, seed)).map(drop));
    }
    device.file.sync_all().with_context(|| format!("{}: its cache could not be flushed", device.path.display()))?;
    Ok(swept)
}
