//! What is refused before anything is opened to be written: options out of their range, and files that must not be one.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use iosonar_trace::output::try_create;
use iosonar_trace::transforms::Pipeline;
use iosonar_trace::{Nanos, format_for};

use crate::address::placement::Fit;
use crate::config::input_files as apart;
use crate::config::issuing::{DepthFor, MOST_DEPTH, Wait};
use crate::config::options::Options;
use crate::device::node::Node;
use crate::error::{Error, Result};
use crate::issuer::closed::Think;
use crate::verify::Verify;

/// Refuses what cannot be done, with what to do instead.
pub fn check(options: &Options) -> Result<()> {
    let targets = options.target.targets.len();
    if targets == 0 && options.method.has_device() {
        return refuse("name the device or file to replay on with --target".into());
    }
    let most_depth = MOST_DEPTH / targets.max(1);
    if options.issuing.depth.of == DepthFor::Each && options.issuing.depth.requests > most_depth {
        return refuse(format!(
            "--depth must be between 1 and {most_depth} for each of {targets} targets, for example 64"
        ));
    }
    let window = options.time.window;
    if window.start >= window.end {
        return refuse("the window is empty: --end must lie behind --start, for example --start 5m --end 10m".into());
    }
    let ends_by_time = options.modes.run_for.is_some() && options.keeps_times();
    if options.edit.as_ref().is_some_and(Pipeline::is_endless) && window.end == Nanos::MAX && !ends_by_time {
        return refuse("what --edit makes never ends: say how long to replay with --duration".into());
    }
    if options.is_piped() && matches!(options.target.rules.fit, Fit::Scale | Fit::Reject) {
        return refuse(
            "--fit scale and reject must know how far the load reaches, and one that comes through a pipe cannot be asked \
             before; name a file as the load, or choose --fit wrap or clip"
                .into(),
        );
    }
    check_modes(options)?;
    for mapping in &options.target.targets {
        if let Some(node) = Node::at(&mapping.target) {
            apart::check(options, &mapping.target, node)?;
        }
    }
    options.method.check()?;
    check_output(options)
}

/// What cannot be had together, beyond what the options' own definitions exclude.
fn check_modes(options: &Options) -> Result<()> {
    if options.modes.again && options.is_piped() {
        return refuse("a pipe can be read only once, so --loop needs a load in a file".into());
    }
    if options.issuing.wait == Some(Wait::Inline) && options.is_piped() {
        return refuse(
            "--wait inline has the loop itself read the load, and while it waited for a pipe nothing else would be done: \
             wait in another way, or name a file as the load"
                .into(),
        );
    }
    if options.modes.closed == Some(Think::Never) && options.time.speedup != 1.0 {
        return refuse(
            "--speedup changes the load's times, and --closed=no-think has none: leave one of them out".into(),
        );
    }
    if options.verification.verify != Verify::Off && !options.method.does_io() {
        return refuse(
            "--verify checks what the target keeps, and without I/O nothing is kept: leave it out, or choose another --engine"
                .into(),
        );
    }
    Ok(())
}

/// The result must be able to be there in the end: that is asked before the run, not after it.
fn check_output(options: &Options) -> Result<()> {
    let Options { output, load, .. } = options;
    let shown = output.display();
    check_format(output)?;
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return refuse_now(format!(
            "{shown}: there is no folder {}; make it first, or choose another --output",
            folder.display()
        ));
    }
    // A link that leads nowhere, or a name so long that the hidden one beside it is too long.
    let Ok(meta) = output.metadata() else { return Ok(try_create(output)?) };
    let joined = options.edit.iter().flat_map(|edit| edit.files());
    for (other, what) in
        std::iter::once((load.as_path(), "the load")).chain(joined.map(|file| (file, "a load that is read")))
    {
        if is_one(output, other) {
            return refuse(format!("{shown} is {what}, which the result would replace; choose another --output"));
        }
    }
    if !meta.is_file() {
        return refuse_now(format!("{shown} is no regular file, and the result must be one; choose another --output"));
    }
    if !options.result.overwrite {
        return refuse_now(format!("{shown} exists; choose another --output, or replace it with --overwrite"));
    }
    Ok(try_create(output)?)
}

/// Refuses a name that ends in no format that holds runs.
pub fn check_format(output: &Path) -> Result<()> {
    if format_for(output).is_ok_and(|format| format.create_run.is_some()) {
        return Ok(());
    }
    refuse(format!(
        "{}: the name of the result tells its format: let it end in .replay.parquet, or in .replay.gz for the classic text",
        output.display()
    ))
}

/// Whether two names mean the same file or device.
pub fn is_one(one: &Path, other: &Path) -> bool {
    matches!((fs::metadata(one), fs::metadata(other)), (Ok(one), Ok(other)) if identity(&one) == identity(&other))
}

fn identity(of: &Metadata) -> (bool, u64, u64) {
    if of.file_type().is_block_device() { (true, of.rdev(), 0) } else { (false, of.dev(), of.ino()) }
}

fn refuse(text: String) -> Result<()> {
    Err(Error::Usage(text))
}

/// Refuses for what is there, and may be otherwise at another time.
fn refuse_now(text: String) -> Result<()> {
    Err(Error::Options(text))
}
