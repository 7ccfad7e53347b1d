//! Several loads at the same time.

use std::path::Path;

use crate::error::Result;
use crate::metadata::Metadata;
use crate::request::{DeviceId, Request};
use crate::units::Nanos;
use crate::words::{Form, Param, Settings, Takes, Unset, parse_time};

use super::counted::{Counted, PerRow, Source, Step};
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Form {
        name: "merge",
        about: "Other loads at the same time as this one",
        details: "Each may be shifted in time. Their devices are added to the load's own, or are taken for these.",
        params: &[
            Param { name: "with", takes: Takes::List, unset: Unset::Refused, help: "files of the other loads" },
            Param {
                name: "offset",
                takes: Takes::List,
                unset: Unset::Means("0 for each"),
                help: "by how much each of them is shifted in time: one time for all, or one for each",
            },
            Param {
                name: "devices",
                takes: Takes::Word(&["add", "same"]),
                unset: Unset::Default("add"),
                help: "whether their devices are others, or the same as this load's, by number",
            },
        ],
        example: "merge with=b.load.gz,c.load.parquet offset=0,30s",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

fn build(settings: &Settings) -> Built {
    let files = settings.list("with").to_vec();
    if files.iter().any(String::is_empty) {
        return Err("with= names a file that has no name: with=b.load.gz,c.load.parquet".into());
    }
    let mut offsets =
        settings.list("offset").iter().map(|text| parse_time(text)).collect::<std::result::Result<Vec<_>, _>>()?;
    match offsets.len() {
        0 => offsets = vec![Nanos::ZERO; files.len()],
        1 => offsets = vec![offsets[0]; files.len()],
        count if count == files.len() => {}
        count => return Err(format!("there are {count} offsets for {} loads", files.len())),
    }
    let add_devices = settings.text("devices") == "add";
    Ok(Box::new(move |rows| {
        let mut devices = rows.metadata().devices.clone();
        let mut loads = vec![rows];
        for (file, offset) in files.iter().zip(&offsets) {
            let load = crate::open_load(Path::new(file))?;
            let first = if add_devices { devices.len() } else { 0 };
            let others = &load.metadata().devices;
            devices.extend_from_slice(others.get(devices.len() - first..).unwrap_or_default());
            loads.push(shifted(load, *offset, first as u16));
        }
        Ok(Counted::on_devices(Merge::new(loads)?, devices))
    }))
}

fn shifted(load: Rows, offset: Nanos, first_device: u16) -> Rows {
    let step = move |request: Request| {
        let device = DeviceId(request.device.0.saturating_add(first_device));
        match request.at.0.checked_add(offset.0) {
            Some(at) => Step::Emit(Request { at: Nanos(at), device, ..request }),
            None => Step::Outside("merge", "offset="),
        }
    };
    Counted::on_same_devices(PerRow::new(load, step))
}

/// Loads, one request at a time in the order of time; of equal times that of the earlier load comes first.
pub struct Merge {
    loads: Vec<(Rows, Option<Request>)>,
    /// That of the first load, with the losses of all.
    metadata: Metadata,
}

impl Merge {
    /// Of these loads; at least one.
    pub fn new(loads: Vec<Rows>) -> Result<Self> {
        let metadata = loads[0].metadata().clone();
        let loads = loads.into_iter().map(|mut load| load.next().map(|head| (load, head)));
        let mut merge = Self { loads: loads.collect::<Result<_>>()?, metadata };
        merge.add_losses();
        Ok(merge)
    }

    fn add_losses(&mut self) {
        let metadata = &mut self.metadata;
        metadata.complete = self.loads.iter().all(|(load, _)| load.metadata().complete);
        let sum =
            |count: fn(&crate::Counts) -> u64| self.loads.iter().map(|(load, _)| count(&load.metadata().counts)).sum();
        metadata.counts.bad_lines = sum(|counts| counts.bad_lines);
        metadata.counts.time_jumps = sum(|counts| counts.time_jumps);
        metadata.counts.lost_events = sum(|counts| counts.lost_events);
        metadata.counts.unmatched = sum(|counts| counts.unmatched);
    }
}

impl Source for Merge {
    fn next(&mut self) -> Result<Option<Request>> {
        let heads = self.loads.iter().enumerate().filter_map(|(index, (_, head))| head.map(|head| (head.at, index)));
        let Some((_, earliest)) = heads.min() else {
            self.add_losses();
            return Ok(None);
        };
        let (load, head) = &mut self.loads[earliest];
        let next = load.next()?;
        Ok(std::mem::replace(head, next))
    }

    fn upstream(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        let each: Option<Vec<f64>> = self.loads.iter().map(|(load, _)| load.progress()).collect();
        each.map(|each| each.iter().sum::<f64>() / each.len() as f64)
    }
}
