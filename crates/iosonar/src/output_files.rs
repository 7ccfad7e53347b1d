//! Output files: which names and existing files are allowed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use iosonar_trace::output::{Existing, Output, refuse_block_device, split_compression};
use iosonar_trace::{Format, IoResult, Kind, Metadata, Request, Writer};

use crate::signals;
use crate::usage::misuse;

/// Whether to replace an existing file.
#[derive(clap::Args)]
pub struct Replacing {
    /// Overwrite the output if it exists
    #[arg(long)]
    overwrite: bool,
}

impl Replacing {
    /// Refuses an existing file without --overwrite, and a block device always.
    pub fn allows(&self, output: &Path) -> Result<()> {
        let Ok(status) = fs::metadata(output) else { return Ok(()) };
        refuse_block_device(&status).with_context(|| output.display().to_string())?;
        if !self.overwrite && status.is_file() {
            bail!("{} exists; name another output, or replace it with --overwrite", output.display());
        }
        Ok(())
    }

    /// Creates a load. From now on, a signal ends the program and removes the unfinished file.
    pub fn create_load(
        &self,
        output: &Path,
        format: &'static Format,
        known: &Metadata,
    ) -> Result<Box<dyn Writer<Request>>> {
        let Some(create) = format.create_load else { return Ok(iosonar_trace::create_load_as(output, format, known)?) };
        Ok(create(self.begin(output)?, known)?)
    }

    /// Creates a run, like [`Self::create_load`].
    pub fn create_run(
        &self,
        output: &Path,
        format: &'static Format,
        known: &Metadata,
    ) -> Result<Box<dyn Writer<IoResult>>> {
        let Some(create) = format.create_run else { return Ok(iosonar_trace::create_run_as(output, format, known)?) };
        Ok(create(self.begin(output)?, known)?)
    }

    /// Creates an output. From now on, a signal ends the program and removes the unfinished file.
    pub fn begin(&self, output: &Path) -> Result<Output> {
        // Again, as it may have appeared since.
        self.allows(output)?;
        signals::remove_unfinished_files();
        let existing = if self.overwrite { Existing::ReplaceAny } else { Existing::ReplaceKnown };
        Ok(Output::create_as(output, existing)?)
    }
}

/// Refuses an existing file and a block device, for a recording.
pub fn refuse_existing(output: &Path) -> Result<()> {
    let Ok(status) = fs::metadata(output) else { return Ok(()) };
    refuse_block_device(&status).with_context(|| output.display().to_string())?;
    if status.is_file() {
        bail!("{} exists; remove it, or name another file with --output", output.display());
    }
    Ok(())
}

/// Refuses the name of a run for a load.
pub fn refuse_name_of_run(output: &Path) -> Result<()> {
    if kind_by_name(output) == Some(Kind::Replay) {
        misuse!("{} is the name of a run, but the output is a load; name it NAME.load…", output.display());
    }
    Ok(())
}

/// The kind of file by its name, such as `x.load.parquet` or `x.replay.gz`.
pub fn kind_by_name(path: &Path) -> Option<Kind> {
    let name = split_compression(path).0.to_string_lossy();
    let name = name.strip_suffix(".parquet").unwrap_or(&name);
    if name.ends_with(".load") {
        Some(Kind::Load)
    } else if name.ends_with(".replay") {
        Some(Kind::Replay)
    } else {
        None
    }
}

/// Refuses to overwrite the input.
pub fn refuse_same_file(input: &Path, output: &Path) -> Result<()> {
    let identity = |path: &Path| -> io::Result<_> {
        let status = fs::metadata(path)?;
        Ok((status.dev(), status.ino(), status.is_file()))
    };
    if let (Ok(one), Ok(other)) = (identity(input), identity(output))
        && one == other
        && one.2
    {
        if input == output {
            misuse!("{} is the input; name another output", input.display());
        }
        misuse!("{} and {} are the same file; name another output", input.display(), output.display());
    }
    Ok(())
}
