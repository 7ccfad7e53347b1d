//! What is refused before anything is opened to be written: options out of their range, and files that must not be one.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use iosonar_trace::transforms::Pipeline;
use iosonar_trace::{Nanos, format_for};

use crate::error::{Error, Result};
use crate::issuer::Think;
use crate::options::{DepthFor, MOST_DEPTH, Options, Wait};
use crate::placement::Fit;
use crate::verify::Verify;

/// Refuses what can't be done, with what to do instead.
pub fn check(options: &Options) -> Result<()> {
    let most_depth = match options.depth_for {
        DepthFor::All => MOST_DEPTH,
        DepthFor::Each => MOST_DEPTH / options.targets.len().max(1),
    };
    if !(1..=most_depth).contains(&options.depth) {
        return refuse(format!(
            "--depth must be between 1 and {most_depth}{}",
            if most_depth < MOST_DEPTH {
                format!(" for each of {} targets", options.targets.len())
            } else {
                String::new()
            }
        ));
    }
    if !(options.speedup.is_finite() && options.speedup > 0.0) {
        return refuse("--speedup must be a positive number".into());
    }
    if options.window.start >= options.window.end {
        return refuse("the window is empty: --end must lie behind --start".into());
    }
    let ends_by_time = options.run_for.is_some() && options.keeps_times();
    if options.edit.as_ref().is_some_and(Pipeline::is_endless) && options.window.end == Nanos::MAX && !ends_by_time {
        return refuse("what --edit makes never ends: say how long to replay with --duration".into());
    }
    if options.load == Path::new("-") && matches!(options.fit, Fit::Scale | Fit::Reject) {
        return refuse(
            "--fit scale and reject must know how far the load reaches, and one that comes through a pipe can't be asked \
             before; name a file as the load, or choose --fit wrap or clip"
                .into(),
        );
    }
    check_modes(options)?;
    if let Some(target) = options.targets.iter().map(|m| &m.target).find(|target| is_one(&options.load, target)) {
        return refuse(format!(
            "{} is the load and the target: the replay would overwrite what it reads; name another --target",
            target.display()
        ));
    }
    options.method.check()?;
    check_output(options)
}

/// What can't be had together.
fn check_modes(options: &Options) -> Result<()> {
    let Options { again, asap, closed, perturb, run_for, verify, method, .. } = options;
    if *again && options.is_piped() {
        return refuse("a pipe can be read only once, so --loop needs a load in a file".into());
    }
    if options.wait == Some(Wait::Work) && options.is_piped() {
        return refuse(
            "--wait work has the loop itself read the load, and while it waited for a pipe nothing else would be done:              wait in another way, or name a file as the load"
                .into(),
        );
    }
    if perturb.is_some() && !options.keeps_times() {
        let other = if *asap { "--asap" } else { "--closed" };
        return refuse(format!(
            "--perturb changes the load's issue times, and {other} has none: leave one of them out"
        ));
    }
    if *closed == Some(Think::Never) && options.speedup != 1.0 {
        return refuse(
            "--speedup changes the load's times, and --closed=no-think has none: leave one of them out".into(),
        );
    }
    if *verify != Verify::Off && !method.does_io() {
        return refuse(
            "--verify checks what the target keeps, and without I/O nothing is kept: leave it out, or choose another --engine"
                .into(),
        );
    }
    if closed.is_some() && *asap {
        return refuse("--closed and --asap are two ways to time requests: leave one of them out".into());
    }
    if run_for.is_some_and(|time| time <= Nanos::ZERO) {
        return refuse("--for must be above zero".into());
    }
    Ok(())
}

/// The result must be able to be there in the end: that is asked before the run, not after it.
fn check_output(options: &Options) -> Result<()> {
    let Options { output, load, targets, .. } = options;
    let shown = output.display();
    if !format_for(output).is_ok_and(|format| format.create_run.is_some()) {
        return refuse(format!(
            "{shown}: the name of the result tells its format: let it end in .replay.parquet, or in .replay.gz for the \
             classic text"
        ));
    }
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return refuse(format!(
            "{shown}: there is no folder {}; make it first, or choose another --output",
            folder.display()
        ));
    }
    let Ok(meta) = output.metadata() else { return Ok(()) };
    for (other, what) in std::iter::once((load, "load")).chain(targets.iter().map(|m| (&m.target, "target"))) {
        if is_one(output, other) {
            return refuse(format!("{shown} is the {what}, which the result would replace; choose another --output"));
        }
    }
    if !meta.is_file() {
        return refuse(format!("{shown} is no regular file, and the result must be one; choose another --output"));
    }
    if !options.overwrite {
        return refuse(format!("{shown} exists; choose another --output, or replace it with --overwrite"));
    }
    Ok(())
}

/// Whether two names mean the same file or device.
pub fn is_one(one: &Path, other: &Path) -> bool {
    matches!((fs::metadata(one), fs::metadata(other)), (Ok(one), Ok(other)) if identity(&one) == identity(&other))
}

fn identity(of: &Metadata) -> (bool, u64, u64) {
    if of.file_type().is_block_device() { (true, of.rdev(), 0) } else { (false, of.dev(), of.ino()) }
}

fn refuse(text: String) -> Result<()> {
    Err(Error::Options(text))
}
