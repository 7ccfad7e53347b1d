//! What a load has: it is read once before the run, in constant memory.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use iosonar_trace::{Kind, Metadata, Nanos, Op, Reader, Request, Sectors, open_load, period, system_text};

/// Up to this length the longest request of a footer stands for the longest read or write.
const SMALL_TRANSFER: u64 = 256;

/// What a load has.
#[derive(Debug)]
pub(super) struct Contents {
    pub devices: Vec<DeviceContents>,
    requests: u64,
    pub first: Nanos,
    last: Nanos,
    is_complete: bool,
}

/// What a load has of one device.
#[derive(Clone, Debug, Default)]
pub struct DeviceContents {
    /// Its name; empty if it has none.
    pub name: String,
    pub requests: u64,
    pub reads: bool,
    pub writes: bool,
    /// The longest read or write.
    pub longest: Sectors,
}

/// The loads of a program that were read, by their paths.
#[derive(Clone, Debug, Default)]
pub struct Loads(Arc<Mutex<BTreeMap<PathBuf, Arc<Contents>>>>);

impl Loads {
    /// What the load in this file has. It is read the first time only.
    pub(super) fn contents(&self, path: &Path) -> Result<Arc<Contents>, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(contents) = known.get(path) {
            return Ok(Arc::clone(contents));
        }
        let contents = Arc::new(Contents::read(path)?);
        known.insert(path.to_owned(), Arc::clone(&contents));
        Ok(contents)
    }

    /// The paths of the loads that were cut short.
    pub fn incomplete(&self) -> Vec<PathBuf> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|(_, contents)| !contents.is_complete).map(|(path, _)| path.clone()).collect()
    }
}

impl Contents {
    fn read(path: &Path) -> Result<Self, String> {
        let kind =
            std::fs::metadata(path).map_err(|why| format!("cannot read {}: {}", path.display(), system_text(&why)))?;
        if kind.file_type().is_fifo() || kind.file_type().is_char_device() {
            return Err(format!("{} is a pipe, but a load is read several times; write it to a file", path.display()));
        }
        let mut load = open_load(path).map_err(|why| why.to_string())?;
        match of_footer(&*load) {
            Some(contents) => Ok(contents),
            None => of_rows(&mut *load).map_err(|why| why.to_string()),
        }
    }

    /// From one pass to the next, as in `replay --loop`.
    pub fn period(&self) -> Nanos {
        period(self.requests, self.first, self.last)
    }
}

/// What the footer of a table says, if it says enough: it does not tell devices apart, and knows only the longest request of
/// all operations.
fn of_footer(load: &dyn Reader<Request>) -> Option<Contents> {
    let Metadata { devices, counts, span, complete, .. } = load.metadata();
    let is_enough =
        load.has_totals() && devices.len() == 1 && (counts.others == 0 || span.max_sectors <= SMALL_TRANSFER);
    is_enough.then(|| Contents {
        devices: vec![DeviceContents {
            name: devices[0].name.clone(),
            requests: counts.requests,
            reads: counts.reads > 0,
            writes: counts.writes > 0,
            longest: Sectors(if counts.reads + counts.writes > 0 { span.max_sectors } else { 0 }),
        }],
        requests: counts.requests,
        first: Nanos(span.first_ns),
        last: Nanos(span.last_ns),
        is_complete: *complete,
    })
}

fn of_rows(load: &mut dyn Reader<Request>) -> iosonar_trace::Result<Contents> {
    let mut total = Metadata::new(Kind::Load, "counted");
    let mut devices = Vec::<DeviceContents>::new();
    while let Some(request) = load.next()? {
        total.count_request(&request);
        let number = usize::from(request.device.0);
        if devices.len() <= number {
            devices.resize(number + 1, DeviceContents::default());
        }
        let device = &mut devices[number];
        device.requests += 1;
        device.reads |= request.op == Op::Read;
        device.writes |= request.op == Op::Write;
        if matches!(request.op, Op::Read | Op::Write) {
            device.longest = device.longest.max(request.sectors);
        }
    }
    let Metadata { devices: names, complete, .. } = load.metadata();
    devices.resize(devices.len().max(names.len()), DeviceContents::default());
    for (device, named) in devices.iter_mut().zip(names) {
        device.name.clone_from(&named.name);
    }
    let (first, last) = (Nanos(total.span.first_ns), Nanos(total.span.last_ns));
    Ok(Contents { devices, requests: total.counts.requests, first, last, is_complete: *complete })
}
