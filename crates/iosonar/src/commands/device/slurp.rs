//! `iosonar device slurp`: reads all of a device or file.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use iosonar_device::passes::{Slurp, ZERO_UNIT_BYTES};
use iosonar_device::readable::{ReadFrom, Readable};
use iosonar_device::sweep::{self, Progress, Swept, sweep};
use iosonar_replay::advice::before;
use iosonar_trace::{SECTOR_BYTES, path_text};
use serde_json::json;

use super::sweeping;
use crate::console::status;
use crate::human::percent_of;
use crate::{console, exit, human};

/// Read all of a device or file: errors, throughput, share of zeros
///
/// Finds unreadable blocks, and fills the caches below the page cache, such as those of a storage array. Changes nothing;
/// the device may be in use.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo iosonar device slurp /dev/sdb
  sudo iosonar device slurp /dev/sdb --json | jq .zero_share
  iosonar device slurp test.img --page-cache  fill this machine's page cache as well

Ctrl-C ends it and shows how far it got. Exit codes: 0 success, 1 failure, 2 wrong command line,
4 parts of the device were unreadable, 5 cut short.")]
pub struct Args {
    /// The block device or regular file
    device: PathBuf,
    /// Read through the page cache, and so fill it, instead of by direct I/O
    #[arg(long)]
    page_cache: bool,
    /// Print a JSON object (see docs/devices.md)
    #[arg(long)]
    json: bool,
}

/// Blocks read, and how many of them were all zero.
type Counted = (u64, u64);

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let through = if self.page_cache { ReadFrom::PageCache } else { ReadFrom::Device };
        let storage = Readable::open(&self.device, through)?;
        let shown = self.device.display();
        if storage.bytes == 0 {
            bail!("{shown} is empty: nothing to read");
        }
        if !storage.direct && !self.page_cache {
            status!("note: the file system of {shown} has no direct I/O: cached data is read from the page cache");
        }
        let progress = Arc::new(Progress::default());
        let _handler = sweeping::stop_on_signals(&progress)?;
        let swept = sweeping::with_bar(storage.bytes, &progress, || read(&storage, &progress))?;
        if self.json {
            writeln!(io::stdout(), "{}", console::json(&self.as_json(&storage, &swept))?)?;
        } else {
            self.for_people(&storage, &swept)?;
        }
        sweeping::failures(&swept).lines().for_each(|line| status!("{line}"));
        if let Some(fatal) = &swept.fatal {
            bail!("{shown}: {fatal}; stopped at sector {}", swept.reached / SECTOR_BYTES);
        }
        if swept.reached < storage.bytes {
            status!(
                "{shown}: cut short at sector {}: read {} of {}",
                swept.reached / SECTOR_BYTES,
                human::block(swept.reached),
                human::block(storage.bytes)
            );
            return Ok(ExitCode::from(exit::CUT_SHORT));
        }
        Ok(if swept.failed_bytes > 0 { ExitCode::from(exit::REQUESTS_FAILED) } else { ExitCode::SUCCESS })
    }

    fn for_people(&self, storage: &Readable, swept: &Swept<Counted>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "read      {}", sweeping::rate(swept))?;
        let (units, zero) = counted(swept);
        let share = zero as f64 / units.max(1) as f64;
        writeln!(
            out,
            "all zero  {} ({} of {} blocks of {})",
            percent_of(zero, units),
            human::count(zero),
            human::count(units),
            human::block(ZERO_UNIT_BYTES)
        )?;
        if let Some((at, took)) = swept.slowest {
            let (chunk, at) = (human::block(sweep::CHUNK_BYTES.min(storage.bytes)), at / SECTOR_BYTES);
            writeln!(out, "slowest   {} for {chunk} at sector {at}", human::span(took.as_secs_f64()))?;
        }
        let failed = human::block(swept.failed_bytes);
        let errors = match swept.failures.len() {
            0 => "none".to_owned(),
            1 => format!("{failed} in 1 region"),
            regions => format!("{failed} in {regions} regions"),
        };
        writeln!(out, "errors    {errors}")?;
        if share >= before::NOTABLE_ZERO_SHARE {
            let note = before::fill_advice(&self.device, &percent_of(zero, units));
            writeln!(out, "note      {}", console::one_line(&note))?;
        }
        Ok(())
    }

    fn as_json(&self, storage: &Readable, swept: &Swept<Counted>) -> serde_json::Value {
        let (units, zero) = counted(swept);
        let seconds = swept.took.as_secs_f64();
        json!({
            "path": path_text(&self.device),
            "bytes": storage.bytes,
            "complete": swept.reached == storage.bytes && swept.fatal.is_none(),
            "reached_bytes": swept.reached,
            "read_bytes": swept.bytes,
            "failed_bytes": swept.failed_bytes,
            "failures": swept.failures,
            "seconds": seconds,
            "bytes_per_s": swept.bytes as f64 / seconds.max(1e-9),
            "page_cache": !storage.direct,
            "unit_bytes": ZERO_UNIT_BYTES,
            "units": units,
            "zero_units": zero,
            "zero_share": zero as f64 / units.max(1) as f64,
            "slowest": swept.slowest.map(|(at, took)| json!({
                "at": at, "bytes": sweep::CHUNK_BYTES.min(storage.bytes - at), "ms": took.as_secs_f64() * 1e3,
            })),
        })
    }
}

/// Reads whole blocks, then the rest of a file behind its last whole block.
fn read(storage: &Readable, progress: &Progress) -> Result<Swept<Counted>> {
    let block = storage.block_bytes;
    let whole = storage.bytes / block * block;
    let count = |pass: Slurp<'_>| (pass.units, pass.zero_units);
    let swept = sweep(0..whole, block, sweep::threads(), progress, || Slurp::new(&storage.file)).map(count);
    if swept.reached < whole || whole == storage.bytes {
        return Ok(swept);
    }
    let buffered = storage.buffered().with_context(|| storage.path.display().to_string())?;
    let tail = sweep(whole..storage.bytes, 1, 1, progress, || Slurp::new(&buffered)).map(count);
    Ok(swept.and_then(tail))
}

fn counted(swept: &Swept<Counted>) -> Counted {
    swept.passes.iter().fold((0, 0), |(units, zero), pass| (units + pass.0, zero + pass.1))
}
