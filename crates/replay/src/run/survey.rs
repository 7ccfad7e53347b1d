//! What a load's window holds, counted before the run: for progress, for room on the disk, for the size of buffers.

use std::path::Path;

use iosonar_trace::{Device, Kind, Metadata, Reader, Request, Span, open_load};

use crate::error::{Error, Result};
use crate::feeder::raise;
use crate::options::{Options, Window};
use crate::placement::Fit;

/// What is known of the load's window before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Requests; at most, where `exact` is false.
    pub requests: u64,
    /// Those that modify the target.
    pub writes: u64,
    /// Times and positions.
    pub span: Span,
    /// The load's devices.
    pub devices: Vec<Device>,
    /// The first sector behind the highest request of each device; empty where nobody asked for it.
    pub reaches: Vec<u64>,
}

/// The load as it is replayed.
pub fn open(options: &Options) -> Result<Box<dyn Reader<Request>>> {
    let load = open_load(&options.load)?;
    Ok(match &options.edit {
        Some(edit) => edit.apply(load)?,
        None => load,
    })
}

/// Counts what lies in the window. A file that knows itself is asked; others are read through; a pipe can't be.
pub fn survey(options: &Options) -> Result<Option<Survey>> {
    let (load, window) = (&options.load, options.window);
    if load == Path::new("-") {
        return Ok(None);
    }
    let mut reader = open(options)?;
    let needs_reaches = matches!(options.fit, Fit::Scale | Fit::Reject);
    if reader.is_surveyed() && window == Window::default() && !needs_reaches {
        return Ok(Some(of(reader.metadata(), reader.metadata(), Vec::new())));
    }
    let mut inside = Metadata::new(Kind::Load, "window");
    let mut reaches = Vec::new();
    while let Some(request) = reader.next()? {
        if request.at >= window.end {
            break;
        }
        if request.at >= window.start {
            inside.count_request(&request);
            raise(&mut reaches, request.device, request.end());
        }
    }
    if inside.counts.requests == 0 {
        return Err(Error::Options(format!(
            "{}: no request to replay{}",
            load.display(),
            if window == Window::default() { "" } else { " in that window; `iosonar info` tells how long the load is" }
        )));
    }
    Ok(Some(of(&inside, reader.metadata(), reaches)))
}

fn of(window: &Metadata, load: &Metadata, reaches: Vec<u64>) -> Survey {
    let counts = &window.counts;
    Survey {
        requests: counts.requests,
        writes: counts.writes + counts.others,
        span: window.span,
        devices: load.devices.clone(),
        reaches,
    }
}
