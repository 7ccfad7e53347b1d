//! What a load has: it is read once before the run, in constant memory.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use iosonar_trace::{Kind, Metadata, Nanos, Op, Reader, Request, Sectors, open_load, system_text};

/// From one pass to the next if all requests of the load have the same time.
const PERIOD_WITHOUT_DISTANCES: Nanos = Nanos(1_000_000_000);

/// Up to this length the longest request of a footer stands for the longest read or write.
const SMALL_TRANSFER: u64 = 256;

/// What a load has.
#[derive(Debug)]
pub(super) struct Contents {
    pub devices: Vec<OfDevice>,
    requests: u64,
    pub first: Nanos,
    last: Nanos,
}

/// What a load has of one device.
#[derive(Clone, Debug, Default)]
pub struct OfDevice {
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

    /// From one pass to the next: from the first request to the last, and the mean distance between requests, as in
    /// `replay --loop`.
    pub fn period(&self) -> Nanos {
        let span = (self.last - self.first).0;
        match (span, self.requests) {
            (0, _) | (_, 0 | 1) => PERIOD_WITHOUT_DISTANCES,
            (span, requests) => Nanos(span) + Nanos((span / (requests as i64 - 1)).max(1)),
        }
    }
}

/// What the footer of a table says, if it says enough: it does not tell devices apart, and knows only the longest request of
/// all operations.
fn of_footer(load: &dyn Reader<Request>) -> Option<Contents> {
    let Metadata { devices, counts, span, .. } = load.metadata();
    let is_enough =
        load.has_totals() && devices.len() == 1 && (counts.others == 0 || span.max_sectors <= SMALL_TRANSFER);
    is_enough.then(|| Contents {
        devices: vec![OfDevice {
            name: devices[0].name.clone(),
            requests: counts.requests,
            reads: counts.reads > 0,
            writes: counts.writes > 0,
            longest: Sectors(if counts.reads + counts.writes > 0 { span.max_sectors } else { 0 }),
        }],
        requests: counts.requests,
        first: Nanos(span.first_ns),
        last: Nanos(span.last_ns),
    })
}

fn of_rows(load: &mut dyn Reader<Request>) -> iosonar_trace::Result<Contents> {
    let mut total = Metadata::new(Kind::Load, "counted");
    let mut devices = Vec::<OfDevice>::new();
    while let Some(request) = load.next()? {
        total.count_request(&request);
        let number = usize::from(request.device.0);
        if devices.len() <= number {
            devices.resize(number + 1, OfDevice::default());
        }
        let device = &mut devices[number];
        device.requests += 1;
        device.reads |= request.op == Op::Read;
        device.writes |= request.op == Op::Write;
        if matches!(request.op, Op::Read | Op::Write) {
            device.longest = device.longest.max(request.sectors);
        }
    }
    let names = &load.metadata().devices;
    devices.resize(devices.len().max(names.len()), OfDevice::default());
    for (device, named) in devices.iter_mut().zip(names) {
        device.name.clone_from(&named.name);
    }
    let (first, last) = (Nanos(total.span.first_ns), Nanos(total.span.last_ns));
    Ok(Contents { devices, requests: total.counts.requests, first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_lasts_as_long_as_an_iteration_of_a_replay() {
        let period = |requests, last| {
            let contents = Contents { devices: Vec::new(), requests, first: Nanos(100), last: Nanos(last) };
            contents.period().0
        };
        assert_eq!([period(11, 1100), period(1, 100), period(5, 100)], [1100, 1_000_000_000, 1_000_000_000]);
        assert_eq!(period(5, 101), 2, "no pass begins before the one before it has ended");
    }
}
