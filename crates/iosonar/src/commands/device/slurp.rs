//! `iosonar device slurp`: reads all of a device or file.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use iosonar_replay::advice::{before, percent};
use iosonar_replay::device::passes::{Slurp, ZERO_UNIT_BYTES};
use iosonar_replay::device::readable::{Readable, Through};
use iosonar_replay::device::sweep::{self, Progress, Swept, sweep};
use iosonar_trace::SECTOR_BYTES;
use serde_json::json;

use super::sweeping;
use crate::told::tell;
use crate::{exit, human};

/// Read all of a device or file: is it readable, how fast, and how much of it is zero
///
/// It proves that all of it can be read, and fills the caches below the page cache, for example those of a storage array.
/// Nothing is changed; what is in use may be read as well.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo iosonar device slurp /dev/sdb
  sudo iosonar device slurp /dev/sdb --json | jq .zero_share
  iosonar device slurp test.img --page-cache  fill this machine's page cache as well

Ctrl-C ends it and says how far it was. Exit codes: 0 done, 1 could not be done, 4 parts of the
device could not be read, 5 cut short.")]
pub struct Args {
    /// The block device or regular file
    device: PathBuf,
    /// Read through the page cache, which then holds as much of it as fits, instead of past it
    #[arg(long)]
    page_cache: bool,
    /// Print one JSON object on standard output (docs/devices.md describes it)
    #[arg(long)]
    json: bool,
}

/// Units that were read, and those of them that were all zero.
type Counted = (u64, u64);

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let through = if self.page_cache { Through::PageCache } else { Through::Device };
        let storage = Readable::open(&self.device, through)?;
        let shown = self.device.display();
        if storage.bytes == 0 {
            bail!("{shown} is empty: there is nothing to read");
        }
        if !storage.direct && !self.page_cache {
            tell!("note: the file system of {shown} can't do direct I/O: what is in the page cache is read from there");
        }
        let progress = Arc::new(Progress::default());
        sweeping::stop_on_signals(&progress)?;
        let swept = sweeping::with_bar(storage.bytes, &progress, || read(&storage, &progress))?;
        if self.json {
            writeln!(io::stdout(), "{:#}", self.as_json(&storage, &swept))?;
        } else {
            self.for_people(&storage, &swept)?;
        }
        sweeping::failures(&swept).lines().for_each(|line| tell!("{line}"));
        if let Some(fatal) = &swept.fatal {
            bail!("{shown}: {fatal}; it ended at sector {}", swept.reached / SECTOR_BYTES);
        }
        if swept.reached < storage.bytes {
            tell!(
                "{shown}: cut short at sector {}: {} of {} were read",
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
        writeln!(out, "all zero  {} ({zero} of {units} pieces of {})", percent(share), human::block(ZERO_UNIT_BYTES))?;
        if let Some((at, took)) = swept.slowest {
            let (chunk, at) = (human::block(sweep::CHUNK_BYTES.min(storage.bytes)), at / SECTOR_BYTES);
            writeln!(out, "slowest   {} for {chunk} at sector {at}", human::span(took.as_secs_f64()))?;
        }
        let failed = human::block(swept.failed_bytes);
        let errors = match swept.failures.len() {
            0 => "none".to_owned(),
            1 => format!("{failed} in 1 place"),
            places => format!("{failed} in {places} places"),
        };
        writeln!(out, "errors    {errors}")?;
        if share >= before::MUCH_ZERO {
            writeln!(out, "note      {}", before::filling(&self.device, &percent(share)))?;
        }
        Ok(())
    }

    fn as_json(&self, storage: &Readable, swept: &Swept<Counted>) -> serde_json::Value {
        let (units, zero) = counted(swept);
        let seconds = swept.took.as_secs_f64();
        json!({
            "path": self.device,
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

/// Reads whole blocks, then what a file has behind its last one.
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
