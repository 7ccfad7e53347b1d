//! Validates the options before anything is opened for writing: ranges, contradictions, and files that must differ.

use std::path::Path;

use iosonar_device::node::Node;
use iosonar_device::node::is_same_file;
use iosonar_pacing::depth::{DepthScope, MAX_DEPTH};
use iosonar_pacing::options::{Changes, Rows};
use iosonar_pacing::wait::Wait;
use iosonar_pacing::{Error, Result};
use iosonar_trace::output::try_create;
use iosonar_trace::transforms::Pipeline;
use iosonar_trace::{Nanos, format_for};

use crate::address::router::Fit;
use crate::config::input_files;
use crate::config::issuers;
use crate::config::options::Options;
use crate::issuer::closed::Think;
use crate::schedule::Window;
use crate::verify::Verify;

/// Refuses options that cannot work. The error says what to do instead.
pub fn check(options: &Options) -> Result<()> {
    options.method.check()?;
    let targets = options.target.targets.len();
    if targets == 0 && options.method.has_device() {
        return refuse("name the device or file to replay on with --target".into());
    }
    let max_depth = MAX_DEPTH / targets.max(1);
    if options.pacing.depth.scope == DepthScope::Each && options.pacing.depth.requests > max_depth {
        return refuse(format!(
            "--depth must be between 1 and {max_depth} for each of {targets} targets, for example 64"
        ));
    }
    if options.pacing.depth.scope == DepthScope::Each && options.issuing.bottleneck > 0 {
        return refuse("--bottleneck limits all targets together: use --depth N instead of each=N, or omit it".into());
    }
    let window = options.time.window;
    if window.start >= window.end {
        return refuse("the window is empty: --end must be after --start, for example --start 5m --end 10m".into());
    }
    let ends_by_time = options.pacing.until().is_some() && options.keeps_times();
    if options.edit.as_ref().is_some_and(Pipeline::is_endless) && window.end == Nanos::MAX && !ends_by_time {
        return refuse("--edit makes an endless load: limit it with --duration".into());
    }
    if options.is_piped() && matches!(options.target.rules.fit, Fit::Scale | Fit::Reject) {
        return refuse(
            "--fit scale and --fit reject need the extent of the load, which is unknown for a pipe; give a file as the load, \
             or use --fit wrap or clip"
                .into(),
        );
    }
    let has_size = options.method.has_device() || options.method.simulated_size().is_some();
    if !has_size && options.target.rules.fit != Fit::Wrap {
        return refuse("--fit places requests on a target, and without one they keep their positions: omit it".into());
    }
    check_modes(options)?;
    issuers::check(options)?;
    for mapping in &options.target.targets {
        if let Some(node) = Node::at(&mapping.target) {
            input_files::check(options, &mapping.target, node)?;
        }
    }
    check_output(options)
}

/// Refuses contradictions that the definitions of the options do not exclude.
fn check_modes(options: &Options) -> Result<()> {
    if options.modes.loops && options.is_piped() {
        return refuse("--loop cannot reread a pipe: give a file as the load".into());
    }
    if *options.pacing.wait == Some(Wait::Inline) && options.is_piped() {
        return refuse(
            "--wait inline reads the load in the issuing loop, and a pipe would block it: use another --wait, or give a file \
             as the load"
                .into(),
        );
    }
    options.pacing.check(Rows::Requests, options.has_deadlines())?;
    if let Some(think @ (Think::Never | Think::Inferred)) = options.modes.closed
        && let Some(option) = options.pacing.changed(Changes::Load).first()
    {
        let why = match think {
            Think::Inferred => "from which --closed=dependencies infers who waited for whom",
            _ => "but --closed=no-think ignores them",
        };
        return refuse(format!("--{option} changes the times of the load, {why}: omit one of them"));
    }
    if options.modes.closed == Some(Think::Inferred) && (options.modes.loops || options.is_piped()) {
        return refuse(
            "--closed=dependencies also reads the load before the run, and issues each request once: give a file as the load, \
             without --loop"
                .into(),
        );
    }
    check_program(options)?;
    if options.verification.verify != Verify::Off && !options.method.does_io() {
        return refuse("--verify needs I/O: omit it, or choose another --engine".into());
    }
    Ok(())
}

/// Refuses options that a program contradicts.
fn check_program(options: &Options) -> Result<()> {
    let program = &options.program;
    if program.program.is_none() {
        return match (program.scale, program.set.is_empty()) {
            (1, true) => Ok(()),
            _ => refuse("--scale and --set are for a program: name it with --program, or omit them".into()),
        };
    }
    let (modes, pacing) = (&options.modes, &options.pacing);
    let contradictions = [
        ("asap", *pacing.asap),
        ("closed", modes.closed.is_some()),
        ("verify", options.verification.verify != Verify::Off),
    ];
    let own = contradictions.iter().filter(|(_, is_set)| *is_set).map(|(option, _)| (*option).to_owned());
    if let Some(option) = own.chain(pacing.changed(Changes::IssueTimes)).next() {
        return refuse(format!(
            "--{option} is for a load alone: a program makes its requests while it runs; omit one of them"
        ));
    }
    if options.has_load() {
        let has_names = options.target.targets.iter().any(|mapping| mapping.source.is_some());
        return match has_names {
            true => refuse("a load and a program together need one --target, without the name of a device".into()),
            false => Ok(()),
        };
    }
    let of_load = [
        ("edit", options.edit.is_some()),
        ("loop", modes.loops),
        ("start, --end and --duration", options.time.window != Window::default()),
    ];
    let own = of_load.iter().filter(|(_, is_set)| *is_set).map(|(option, _)| (*option).to_owned());
    match own.chain(pacing.changed(Changes::Load)).next() {
        Some(option) => refuse(format!("--{option} is for a load, and there is none: omit it")),
        None => Ok(()),
    }
}

/// Checks before the run that the result can be written after it.
fn check_output(options: &Options) -> Result<()> {
    let output = options.output();
    let shown = output.display();
    check_format(output)?;
    let directory = output.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        return refuse_now(format!(
            "{shown}: directory {} does not exist; create it, or choose another --output",
            directory.display()
        ));
    }
    // It does not exist. `try_create` refuses a dangling link, and a name too long for the temporary file beside it.
    let Ok(meta) = output.metadata() else { return Ok(try_create(output)?) };
    let joined = options.edit.iter().flat_map(|edit| edit.files());
    let load = options.load.iter().map(|load| (load.as_path(), "the load"));
    for (input, role) in load.chain(joined.map(|file| (file, "a load that --edit joins"))) {
        if is_same_file(output, input) {
            return refuse(format!("{shown} is {role}, which the result would replace; choose another --output"));
        }
    }
    if !meta.is_file() {
        return refuse_now(format!("{shown} is not a regular file; choose another --output"));
    }
    if !options.result.overwrite {
        return refuse_now(format!("{shown} exists; choose another --output, or replace it with --overwrite"));
    }
    Ok(try_create(output)?)
}

/// Refuses a name whose ending belongs to no format for results.
pub fn check_format(output: &Path) -> Result<()> {
    if format_for(output).is_ok_and(|format| format.create_run.is_some() && !format.is_for_viewers) {
        return Ok(());
    }
    refuse(format!(
        "{}: unknown format: the name must end in .replay.parquet, or in .replay.gz for blkreplay's text",
        output.display()
    ))
}

fn refuse(text: String) -> Result<()> {
    Err(Error::Usage(text))
}

/// Refuses because of the current state of the file system.
fn refuse_now(text: String) -> Result<()> {
    Err(Error::Options(text))
}
