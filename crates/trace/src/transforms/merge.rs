//! Several loads at the same time.

use std::path::Path;

use crate::error::{Error, Result};
use crate::model::metadata::{Counts, Metadata};
use crate::model::request::{DeviceId, Request};
use crate::model::units::Nanos;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, parse_time};

use super::counted::{Counted, PerRow, Source, Step};
use super::{Built, Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "merge",
        about: "Adds other loads that run at the same time",
        details: "Their devices are added to the load's own, or equal those of the same number. Keeps the preambles\n\
                  of all loads. Drops the start date if the recordings began at a different distance in time than\n\
                  here, and the queueing times of loads whose times are of another moment (queued or issued) than\n\
                  the first load's.",
        params: &[
            WITH,
            ParamSpec {
                name: "offset",
                takes: ParamType::List,
                default: ParamDefault::Described("0 for each"),
                help: "shift in time: one for all of them, or one for each",
            },
            ParamSpec { default: ParamDefault::Value("add"), ..DEVICES },
        ],
        example: "merge with=b.load.gz,c.load.parquet offset=0,30s",
    },
    needs: Needs::Rows,
    length: kept,
    build,
};

/// The setting that names other loads.
pub const WITH: ParamSpec = ParamSpec {
    name: "with",
    takes: ParamType::List,
    default: ParamDefault::Required,
    help: "files of the other loads",
};

/// The setting for a [`Numbering`].
pub const DEVICES: ParamSpec = ParamSpec {
    name: "devices",
    takes: ParamType::Word(&["add", "same"]),
    default: ParamDefault::Required,
    help: "add their devices, or equate devices of the same number",
};

/// The files that [`WITH`] names.
pub fn files(settings: &Settings) -> std::result::Result<Vec<String>, String> {
    let files = settings.list("with").to_vec();
    if files.iter().any(String::is_empty) {
        return Err("with= contains an empty file name; write for example with=b.load.gz,c.load.parquet".into());
    }
    Ok(files)
}

fn build(settings: &Settings) -> Built {
    let files = files(settings)?;
    let mut offsets =
        settings.list("offset").iter().map(|text| parse_time(text)).collect::<std::result::Result<Vec<_>, _>>()?;
    match offsets.len() {
        0 => offsets = vec![Nanos::ZERO; files.len()],
        1 => offsets = vec![offsets[0]; files.len()],
        count if count == files.len() => {}
        count => return Err(format!("{count} offsets for {} loads", files.len())),
    }
    let numbering = Numbering::of(settings);
    Ok(Box::new(move |rows| {
        let mut loads = vec![rows];
        for (file, offset) in files.iter().zip(&offsets) {
            loads.push(shifted(crate::open_load(Path::new(file))?, *offset));
        }
        Ok(Counted::on_same_devices(Merge::new(loads, numbering, Order::OfTime)?))
    }))
}

fn shifted(load: Rows, offset: Nanos) -> Rows {
    let step = move |request: Request| match request.at.0.checked_add(offset.0) {
        Some(at) => Step::Emit(Request { at: Nanos(at), ..request }),
        None => Step::Outside("merge", "offset="),
    };
    Counted::with_metadata(PerRow::new(load, step), |metadata| {
        metadata.epoch_unix_ns = metadata.epoch_unix_ns.and_then(|epoch| epoch.checked_sub(offset.0));
    })
}

/// How the devices of several loads are numbered together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    /// All devices are different; new ones get the next free number.
    Added,
    /// Devices of the same number are the same.
    Same,
}

impl Numbering {
    /// The value of [`DEVICES`].
    pub fn of(settings: &Settings) -> Self {
        if settings.text("devices") == "add" { Self::Added } else { Self::Same }
    }
}

/// Which load provides the next request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The one with the earliest request; for equal times the earlier load.
    OfTime,
    /// The first that has not ended.
    OfLoads,
}

/// Several loads, read as one.
pub struct Merge {
    loads: Vec<Load>,
    numbering: Numbering,
    order: Order,
    /// The metadata of the first load, with the preambles, devices, losses and warnings of all.
    metadata: Metadata,
}

struct Load {
    rows: Rows,
    /// Its next request.
    head: Option<Request>,
    /// For each of its devices the number in the result.
    numbers: Vec<DeviceId>,
    /// Number of its warnings already copied.
    warnings: usize,
    /// Whether its times are of the same moment (queued or issued) as those of the first load.
    has_same_times: bool,
}

impl Merge {
    /// Expects at least one load.
    pub fn new(loads: Vec<Rows>, numbering: Numbering, order: Order) -> Result<Self> {
        let mut metadata = loads[0].metadata().clone();
        metadata.devices.clear();
        metadata.warnings.clear();
        for (index, load) in loads.iter().enumerate().skip(1) {
            add_preamble(&mut metadata.source.preamble, index + 1, &load.metadata().source.preamble);
            compare_times(&mut metadata, index + 1, load.metadata(), order);
        }
        let request_time = metadata.request_time;
        let load = |rows: Rows| {
            let has_same_times = rows.metadata().request_time == request_time;
            Load { rows, head: None, numbers: Vec::new(), warnings: 0, has_same_times }
        };
        let mut merge = Self { loads: loads.into_iter().map(load).collect(), numbering, order, metadata };
        for number in 0..merge.loads.len() {
            merge.learn_devices(number)?;
        }
        for number in 0..merge.loads.len() {
            merge.advance(number)?;
        }
        merge.take_over();
        Ok(merge)
    }

    /// Returns the head of one load and reads the next one.
    fn advance(&mut self, number: usize) -> Result<Option<Request>> {
        let load = &mut self.loads[number];
        let lost = losses(load.rows.metadata());
        let next = load.rows.next()?;
        let is_more_lost = losses(load.rows.metadata()) != lost;
        let head = std::mem::replace(&mut load.head, next);
        if load.rows.metadata().devices.len() > load.numbers.len() {
            self.learn_devices(number)?;
        }
        if is_more_lost {
            self.take_over();
        }
        Ok(head)
    }

    /// Numbers the devices of a load that have none yet.
    fn learn_devices(&mut self, number: usize) -> Result<()> {
        let (load, devices) = (&mut self.loads[number], &mut self.metadata.devices);
        for device in &load.rows.metadata().devices[load.numbers.len()..] {
            let place = match self.numbering {
                Numbering::Added => devices.len(),
                Numbering::Same => load.numbers.len(),
            };
            match devices.get_mut(place) {
                Some(same) => same.sectors = same.sectors.zip(device.sectors).map(|(one, other)| one.max(other)),
                None => devices.push(device.clone()),
            }
            let too_many = |_| Error::Request("merge: together, the loads have more than 65536 devices".into());
            load.numbers.push(DeviceId(u16::try_from(place).map_err(too_many)?));
        }
        Ok(())
    }

    /// Copies new warnings and the sums of losses. Warnings of all but the first load are prefixed with its number.
    fn take_over(&mut self) {
        let metadata = &mut self.metadata;
        for (index, load) in self.loads.iter_mut().enumerate() {
            let warnings = &load.rows.metadata().warnings;
            for warning in &warnings[load.warnings..] {
                metadata.warning(if index == 0 { warning.clone() } else { format!("load {}: {warning}", index + 1) });
            }
            load.warnings = warnings.len();
        }
        let all = || self.loads.iter().map(|load| load.rows.metadata());
        metadata.complete = all().all(|metadata| metadata.complete);
        let Counts { requests, reads, writes, others, .. } = metadata.counts;
        metadata.counts = Counts { requests, reads, writes, others, ..Counts::default() };
        all().for_each(|of| metadata.counts.add_losses(&of.counts));
    }

    /// The next request and the index of its load.
    pub fn next_of(&mut self) -> Result<Option<(usize, Request)>> {
        let mut heads =
            self.loads.iter().enumerate().filter_map(|(index, load)| load.head.map(|head| (head.at, index)));
        let next = match self.order {
            Order::OfTime => heads.min(),
            Order::OfLoads => heads.next(),
        };
        let Some((_, index)) = next else { return Ok(None) };
        let Some(mut request) = self.advance(index)? else { return Ok(None) };
        let Load { numbers, has_same_times, .. } = &self.loads[index];
        if !has_same_times {
            request.queued = None;
        }
        request.device = *numbers.get(usize::from(request.device.0)).ok_or_else(|| {
            let problem = format!("a request names the device {}, but there are {}", request.device.0, numbers.len());
            Error::Request(format!("merge: in load {}, {problem}", index + 1))
        })?;
        Ok(Some((index, request)))
    }
}

/// Appends the preamble of another load, because licences remain valid in the result.
fn add_preamble(preamble: &mut String, number: usize, further: &str) {
    let further = further.trim();
    if preamble.contains(further) {
        return;
    }
    if !preamble.is_empty() && !preamble.ends_with('\n') {
        preamble.push('\n');
    }
    *preamble += &format!("Of load {number}:\n{further}");
}

/// Drops metadata on times that holds for the first load but not for the other.
fn compare_times(metadata: &mut Metadata, number: usize, other: &Metadata, order: Order) {
    if other.request_time != metadata.request_time {
        metadata.warning(format!(
            "load {number} has the times of another moment (queued or issued) than load 1; its queueing times are dropped"
        ));
    }
    if let (Some(first), Some(other), Order::OfTime) = (metadata.epoch_unix_ns, other.epoch_unix_ns, order)
        && first != other
    {
        metadata.epoch_unix_ns = None;
        let (by, later) = (Nanos(other.abs_diff(first) as i64), if other > first { "later" } else { "earlier" });
        metadata.warning(format!(
            "relative to load 1, load {number} was recorded {by} {later} than it runs here; the start date is dropped"
        ));
    }
}

/// The part of the metadata that rarely changes while a load is read.
fn losses(metadata: &Metadata) -> (Counts, bool, usize) {
    let counts = Counts { requests: 0, reads: 0, writes: 0, others: 0, ..metadata.counts.clone() };
    (counts, metadata.complete, metadata.warnings.len())
}

impl Source for Merge {
    fn next(&mut self) -> Result<Option<Request>> {
        Ok(self.next_of()?.map(|(_, request)| request))
    }

    fn upstream(&self) -> &Metadata {
        &self.metadata
    }

    fn has_all_devices(&self) -> bool {
        self.loads.iter().all(|load| load.rows.has_all_devices())
    }

    fn progress(&self) -> Option<f64> {
        let each: Option<Vec<f64>> = self.loads.iter().map(|load| load.rows.progress()).collect();
        each.map(|each| each.iter().sum::<f64>() / each.len() as f64)
    }
}
