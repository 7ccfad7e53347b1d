//! Several loads, one after the other.

use std::path::Path;

use crate::error::Result;
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::model::units::Nanos;
use crate::params::{Definition, ParamDefault, ParamSpec, Settings};

use super::counted::{Counted, Source, outside};
use super::merge::{DEVICES, Merge, Numbering, Order, WITH, files};
use super::{Built, Needs, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "append",
        about: "Appends other loads, each starting when the previous one has ended",
        details: "The next load starts one mean distance between requests after the last request, or 1 s after it if\n\
                  all had the same time. Keeps the preambles of all loads.",
        params: &[WITH, ParamSpec { default: ParamDefault::Value("same"), ..DEVICES }],
        example: "append with=tuesday.load.gz,wednesday.load.parquet",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let (files, numbering) = (files(settings)?, Numbering::of(settings));
    Ok(Box::new(move |rows| {
        let mut loads = vec![rows];
        for file in &files {
            loads.push(crate::open_load(Path::new(file))?);
        }
        let loads = Merge::new(loads, numbering, Order::OfLoads)?;
        Ok(Counted::on_same_devices(Append { loads, current: None, number: 0 }))
    }))
}

struct Append {
    loads: Merge,
    /// The load being read; none before the first request.
    current: Option<Current>,
    /// Requests so far, over all loads.
    number: u64,
}

struct Current {
    load: usize,
    /// Added to the times of its file.
    shift: Nanos,
    first: Nanos,
    last: Nanos,
    count: i64,
}

impl Current {
    /// The time at which the next load begins.
    fn end(&self) -> Option<Nanos> {
        let distance = match self.last.0.checked_sub(self.first.0)? {
            // The distance between requests is unknown.
            0 => 1_000_000_000,
            span => (span / (self.count - 1)).max(1),
        };
        self.last.0.checked_add(distance).map(Nanos)
    }
}

impl Append {
    /// The new time of a request of that load with the time `at` in its file.
    fn moved(&mut self, load: usize, at: Nanos) -> Option<Nanos> {
        let shift = match &self.current {
            None => Nanos::ZERO,
            Some(current) if current.load == load => current.shift,
            Some(before) => Nanos(before.end()?.0.checked_sub(at.0)?),
        };
        let at = Nanos(at.0.checked_add(shift.0)?);
        match &mut self.current {
            Some(current) if current.load == load => (current.last, current.count) = (at, current.count + 1),
            current => *current = Some(Current { load, shift, first: at, last: at, count: 1 }),
        }
        Some(at)
    }
}

impl Source for Append {
    fn next(&mut self) -> Result<Option<Request>> {
        let Some((load, request)) = self.loads.next_of()? else { return Ok(None) };
        self.number += 1;
        let at = self.moved(load, request.at).ok_or_else(|| outside("append", "with=", self.number))?;
        Ok(Some(Request { at, ..request }))
    }

    fn upstream(&self) -> &Metadata {
        self.loads.upstream()
    }

    fn has_all_devices(&self) -> bool {
        self.loads.has_all_devices()
    }

    fn progress(&self) -> Option<f64> {
        self.loads.progress()
    }
}
