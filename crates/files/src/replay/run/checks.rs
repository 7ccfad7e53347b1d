//! Refuses options that cannot work, before anything is read.

use std::fs;
use std::path::Path;

use iosonar_pacing::options::Rows;
use iosonar_pacing::start;
use iosonar_trace::Nanos;
use iosonar_trace::output::try_create;

use crate::replay::error::{Error, Result};
use crate::replay::options::{Cache, Options, Threads};

/// The most threads of a trace that get threads of their own.
const MAX_THREADS: usize = 4096;

/// Checks the options and the names of trace and result.
pub fn check(options: &Options) -> Result<()> {
    let usage = |text: &str| Err(Error::Usage(text.into()));
    start::check(options.pacing.start(Nanos::ZERO))?;
    options.pacing.check(Rows::Calls, options.timing.has_times())?;
    if options.start.zip(options.end).is_some_and(|(start, end)| end <= start) {
        return usage("the window is empty: --end must be after --start, for example --start 5m --end 10m");
    }
    if options.extra_delay < Nanos::ZERO {
        return usage("--extra-delay must not be negative, for example 100us");
    }
    match options.threads {
        Threads::Trace if !options.order.keeps_threads() => {
            let order = options.order;
            return usage(&format!("--order {order} does not keep the order of threads: omit --threads trace"));
        }
        Threads::Pool(0) => return usage("--depth must be at least 1, for example 64"),
        Threads::Pool(more) if more > MAX_THREADS => return usage("--depth must be at most 4096, for example 64"),
        Threads::Pool(_) | Threads::Trace => {}
    }
    if options.instances == 0 {
        return usage("--instances must be at least 1, for example 4");
    }
    if options.cache == Cache::Drop && options.fake_io {
        return usage("--fake-io issues no calls: omit --drop-caches");
    }
    if !fs::metadata(&options.trace).is_ok_and(|meta| !meta.is_file()) {
        check_output(options)
    } else {
        Err(Error::Options(format!("{}: give a file: the trace is read several times", options.trace.display())))
    }
}

/// Checks the name of a result.
pub fn check_name(output: &Path) -> Result<()> {
    if !output.as_os_str().as_encoded_bytes().ends_with(b".calls-run.parquet") {
        let shown = output.display();
        return Err(Error::Usage(format!("{shown}: the name of the result must end in .calls-run.parquet")));
    }
    Ok(())
}

fn check_output(options: &Options) -> Result<()> {
    let shown = options.output.display();
    check_name(&options.output)?;
    let directory =
        options.output.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.is_dir() {
        let directory = directory.display();
        return Err(Error::Options(format!(
            "{shown}: directory {directory} does not exist; create it, or choose another --output"
        )));
    }
    if let Ok(meta) = options.output.metadata() {
        let Options { trace, map, ignore, tree_from, .. } = options;
        for (input, role) in [
            (Some(trace), "trace"),
            (map.as_ref(), "map"),
            (ignore.as_ref(), "list of ignored files"),
            (tree_from.as_ref(), "snapshot"),
        ] {
            if input.is_some_and(|input| iosonar_device::node::is_same_file(&options.output, input)) {
                return Err(Error::Usage(format!(
                    "{shown} is the {role}, which the result would replace; choose another --output"
                )));
            }
        }
        if !meta.is_file() {
            return Err(Error::Options(format!("{shown} is not a regular file; choose another --output")));
        }
        if !options.overwrite {
            return Err(Error::Options(format!(
                "{shown} exists; choose another --output, or replace it with --overwrite"
            )));
        }
    }
    Ok(try_create(&options.output)?)
}
