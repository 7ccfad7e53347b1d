//! Counts what the rows had that an output format cannot hold, and reports it at the end of the file.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::io::output::Output;
use crate::io::stream::ConversionLoss;
use crate::model::metadata::{Metadata, RequestTime};
use crate::model::request::{Flags, Request};
use crate::model::units::{Nanos, SECTOR_BYTES, Sector, Sectors};
use crate::text::human;

/// Counts of requests that lost something.
#[derive(Default)]
pub struct Losses {
    /// Requests that came to be written.
    requests: u64,
    /// Requests left out because the format does not have their operation.
    pub unsupported_ops: u64,
    /// Requests for other devices than the first, in a format without devices.
    pub other_devices: u64,
    flags: u64,
    times: u64,
    processes: u64,
    split: u64,
    too_long: u64,
    negative: u64,
    too_far: u64,
    /// Added to every time, so that the first one is not negative; set by the first row.
    shift: Option<Nanos>,
}

impl Losses {
    /// The time of a request in a format without negative times; `None` if the request must be left out.
    pub fn time(&mut self, at: Nanos) -> Option<u64> {
        self.requests += 1;
        let shift = *self.shift.get_or_insert(Nanos(at.0.min(0).saturating_neg()));
        let shifted = at + shift;
        if !shifted.is_time() {
            self.too_far += 1;
            return None;
        }
        let shifted = u64::try_from(shifted.0).ok();
        self.negative += u64::from(shifted.is_none());
        shifted
    }

    /// The shift that is added to every time: above zero if the first time is negative.
    pub fn shift(&self) -> Nanos {
        self.shift.unwrap_or_default()
    }

    /// Counts a request with flags, which the format does not have.
    pub fn flags(&mut self, flags: Flags) -> &mut Self {
        self.flags += u64::from(flags != Flags::NONE);
        self
    }

    /// Counts a request with a latency or a queueing time, which the format does not have.
    pub fn times(&mut self, request: &Request) -> &mut Self {
        self.times += u64::from(request.latency.is_some() || request.queued.is_some());
        self
    }

    /// Counts a request with a process, which the format does not have.
    pub fn process(&mut self, request: &Request) -> &mut Self {
        self.processes += u64::from(request.pid.is_some() || !request.comm.as_str().is_empty());
        self
    }

    /// Counts a request that [`pieces`] splits, because the format has 32 bits for the length.
    pub fn length(&mut self, request: &Request) -> &mut Self {
        self.split += u64::from(request.sectors > MAX_PIECE);
        self
    }

    /// Whether the request can be written in at most [`MAX_PIECES`] pieces. If not, it is counted and must be left out.
    pub fn fits(&mut self, request: &Request) -> bool {
        let fits = request.sectors.0.div_ceil(MAX_PIECE.0) <= MAX_PIECES;
        self.too_long += u64::from(!fits);
        fits
    }

    /// Counts a request for another device than the first, in a format without devices.
    pub fn device(&mut self, request: &Request) -> &mut Self {
        self.other_devices += u64::from(request.device.0 > 0);
        self
    }

    /// The number of rows left out, and a sentence for each kind of loss.
    ///
    /// # Errors
    /// If no request is left: then there must be no file, as it would not be one of this format.
    pub fn conversion_loss(&self, output: &Output, format: &str) -> Result<ConversionLoss> {
        let loss = self.loss(format);
        if self.requests > loss.rows {
            return Ok(loss);
        }
        let why = match self.requests {
            0 => format!("the load has no requests, and a file of the format {format} has at least one"),
            _ => format!("the format {format} can hold no request of this load: {}", self.left_out().join("; ")),
        };
        Err(Error::format(output.path(), format!("{why}; write NAME.load.parquet, which holds every load")))
    }

    /// The same, for a format that has files without requests.
    ///
    /// # Errors
    /// If there are requests, and all were left out.
    pub fn conversion_loss_or_none(&self, output: &Output, format: &str) -> Result<ConversionLoss> {
        if self.requests == 0 { Ok(self.loss(format)) } else { self.conversion_loss(output, format) }
    }

    fn loss(&self, format: &str) -> ConversionLoss {
        let rows = self.unsupported_ops + self.negative + self.too_far + self.too_long;
        ConversionLoss { rows, warnings: self.sentences(format) }
    }

    /// A clause for each reason to leave out a request.
    fn left_out(&self) -> Vec<String> {
        said([
            (
                self.unsupported_ops,
                "requests were left out because it does not have their operation (flush, discard, …)",
            ),
            (self.negative, "requests were left out because their time is before that of the first one"),
            (self.too_far, "requests were left out because their time is 292 years or more from zero"),
            (self.too_long, "requests longer than 255 TiB were left out"),
        ])
    }

    fn sentences(&self, format: &str) -> Vec<String> {
        let changed = said([
            (self.other_devices, "requests for other devices now look like requests for the first device"),
            (self.flags, "requests lost their flags (FUA, sync, metadata, …)"),
            (self.times, "requests lost their original latency or queueing time"),
            (self.processes, "requests lost their process"),
            (self.split, "requests of 4 GiB and more were split"),
        ]);
        let lost = self.left_out().into_iter().chain(changed);
        let mut said: Vec<String> =
            lost.map(|lost| format!("the format {format} cannot hold everything: {lost}")).collect();
        if let Some(shift) = self.shift.filter(|shift| shift.0 > 0) {
            said.push(format!("the format {format} has no negative times: all times are shifted by {shift}"));
        }
        said
    }
}

/// A clause for each count above zero.
fn said<const N: usize>(counts: [(u64, &str); N]) -> Vec<String> {
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| human::agreed(count, what)).collect()
}

/// The longest piece of a request whose length in bytes fits into 32 bits. Whole mebibytes, so that the next piece begins
/// at a block of the device, whatever its block size.
const MAX_PIECE: Sectors = Sectors(((1 << 32) - (1 << 20)) / SECTOR_BYTES);

/// 255.9 TiB. A longer request is damage, and the pieces of a single one would fill a disk.
const MAX_PIECES: u64 = 1 << 16;

/// Splits a request for a format with 32 bits for the length in bytes; one piece if it is short enough.
pub fn pieces(request: &Request) -> impl Iterator<Item = (Sector, Sectors)> + use<> {
    let (start, length) = (request.sector.0, request.sectors.0);
    let count = length.div_ceil(MAX_PIECE.0).max(1);
    (0..count).map(move |piece| {
        let before = piece * MAX_PIECE.0;
        (Sector(start + before), Sectors((length - before).min(MAX_PIECE.0)))
    })
}

/// A property of a load or run as a whole, which an output format may be unable to store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// The text in front of the rows.
    Preamble,
    /// The wall-clock time of its zero.
    Epoch,
    /// The names of its devices.
    Names,
    /// The sizes of its devices.
    Sizes,
    /// That its times are issue times.
    RequestTime,
    /// What it lacks.
    Losses,
}

impl Property {
    /// The property in words, if the load or run has it.
    fn lost(self, of: &Metadata) -> Option<Cow<'static, str>> {
        let (is_known, name) = match self {
            Self::Preamble => (!of.source.preamble.trim().is_empty(), "the preamble (licence, origin)"),
            Self::Epoch => {
                let run_began = of.run.as_ref().is_some_and(|run| run.started_unix_ns.known().is_some());
                (of.epoch_unix_ns.is_some() || run_began, "the start date and time")
            }
            Self::Names => (of.devices.iter().any(|device| !device.name.is_empty()), "names of devices"),
            Self::Sizes => (of.devices.iter().any(|device| device.sectors.is_some()), "sizes of devices"),
            Self::RequestTime => (of.request_time == RequestTime::Issued, "that its times are issue times"),
            Self::Losses => return losses(of).map(Cow::Owned),
        };
        is_known.then_some(name.into())
    }
}

/// What a load lacks, in words, if it lacks anything.
fn losses(of: &Metadata) -> Option<String> {
    let counts = &of.counts;
    // A row of a table that could not be read is among the bad lines. Missing completions are those of the rows.
    let bad_lines = counts.bad_lines.saturating_sub(counts.unreadable_rows);
    let mut lost: Vec<String> = [
        (counts.unreadable_rows, "unreadable row"),
        (bad_lines, "bad line"),
        (counts.lost_events, "lost event"),
        (counts.impossible_times, "impossible time"),
        (counts.time_jumps, "time jump"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| human::counted(count, what))
    .collect();
    if !of.complete {
        lost.push("that it was cut short".to_owned());
    }
    (!lost.is_empty()).then(|| format!("what the load lacks ({})", lost.join(", ")))
}

/// A sentence about the properties of the load or run that the format does not store.
pub fn lost_properties(format: &str, unsupported: &[Property], metadata: &Metadata) -> Option<String> {
    let lost: Vec<_> = unsupported.iter().filter_map(|property| property.lost(metadata)).collect();
    (!lost.is_empty()).then(|| format!("the format {format} does not store {}", lost.join(", nor ")))
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{about, load, written};
    use crate::model::metadata::{Device, RequestTime};
    use crate::model::request::{Op, Request};
    use crate::model::units::{Nanos, Sector, Sectors};

    #[test]
    fn the_epoch_is_shifted_with_the_times() {
        let request = |at| Request::new(Nanos(at), Op::Read, Sector(8), Sectors(8));
        let about = crate::Metadata { epoch_unix_ns: Some(100_000_000_000), ..about(&["8,0"]) };
        for first in [-5_000_000_000, 0, 5_000_000_000] {
            let rows = [request(first), request(6_000_000_000)];
            let (trace, _) = written("blktrace", &rows, &about);
            let (back, read) = load("blktrace", &trace);
            let wall_clock = |row: &Request, epoch: Option<i64>| row.at.0 + epoch.unwrap();
            assert_eq!(wall_clock(&back[0], read.epoch_unix_ns), wall_clock(&rows[0], about.epoch_unix_ns), "{first}");
        }
    }

    #[test]
    fn a_request_longer_than_255_tib_is_left_out() {
        let request = |sectors| Request::new(Nanos(0), Op::Write, Sector(0), Sectors(sectors));
        for format in ["fio-iolog", "blktrace"] {
            let rows = [request(1 << 53), request(8)];
            let (trace, said) = written(format, &rows, &about(&["8,0"]));
            assert!(trace.len() < 10_000, "{format}: {} bytes", trace.len());
            assert!(said.iter().any(|said| said.contains("1 request longer than 255 TiB was left out")), "{said:?}");
            assert_eq!(load(format, &trace).0.len(), 1, "{format}");
        }
    }

    #[test]
    fn a_lost_preamble_or_epoch_is_reported() {
        let rows = [Request { pid: Some(1), ..Request::new(Nanos(0), Op::Read, Sector(8), Sectors(8)) }];
        let of_origin = |format: &str, preamble: &str, epoch| {
            let mut about = crate::Metadata { epoch_unix_ns: epoch, ..about(&[""]) };
            about.source.preamble = preamble.to_owned();
            let said = written(format, &rows, &about).1.into_iter().filter(|said| said.contains("does not store"));
            said.collect::<Vec<_>>()
        };
        for format in ["fio-iolog", "blkparse", "blktrace", "spc", "classic"] {
            assert_eq!(of_origin(format, " \n", None), [""; 0], "{format}");
            let (licence, date) = (of_origin(format, "Free for all", None), of_origin(format, "", Some(1 << 60)));
            assert_eq!(licence.len(), usize::from(format != "classic"), "{format}: {licence:?}");
            assert_eq!(date.len(), usize::from(format != "blktrace"), "{format}: {date:?}");
            let both = of_origin(format, "Free for all", Some(1 << 60));
            assert_eq!(both.len(), 1, "{format}: {both:?}");
        }
    }

    #[test]
    fn formats_without_room_for_losses_count_them() {
        let rows = [Request { pid: Some(1), ..Request::new(Nanos(0), Op::Read, Sector(8), Sectors(8)) }];
        let mut lossy = crate::Metadata { complete: false, ..about(&[""]) };
        (lossy.counts.bad_lines, lossy.counts.unreadable_rows, lossy.counts.lost_events) = (5, 2, 1);
        let lacks = "what the load lacks (2 unreadable rows, 3 bad lines, 1 lost event, that it was cut short)";
        for format in ["fio-iolog", "blkparse", "blktrace", "spc", "classic"] {
            let said = written(format, &rows, &lossy).1;
            assert_eq!(said.iter().any(|said| said.ends_with(lacks)), format != "classic", "{format}: {said:?}");
        }
    }

    #[test]
    fn lost_device_names_sizes_and_kinds_of_times_are_reported() {
        let rows = [Request { pid: Some(1), ..Request::new(Nanos(0), Op::Read, Sector(8), Sectors(8)) }];
        for (format, lost) in [
            ("fio-iolog", ["", "sizes of devices", "that its times are issue times"]),
            ("spc", ["", "sizes of devices", "that its times are issue times"]),
            ("blkparse", ["", "sizes of devices", ""]),
            ("blktrace", ["", "sizes of devices", ""]),
            ("classic", ["names of devices", "sizes of devices", "that its times are issue times"]),
        ] {
            let abouts = [
                about(&["8,0"]),
                crate::Metadata { devices: vec![Device { sectors: Some(99), ..Device::default() }], ..about(&[]) },
                crate::Metadata { request_time: RequestTime::Issued, ..about(&[""]) },
            ];
            for (about, lost) in abouts.iter().zip(lost) {
                let said = written(format, &rows, about).1;
                let reported = said.iter().find(|said| said.contains("does not store"));
                assert_eq!(reported.is_some(), !lost.is_empty(), "{format}: {said:?}");
                assert!(reported.is_none_or(|said| said.ends_with(&format!("does not store {lost}"))), "{reported:?}");
            }
        }
    }
}
