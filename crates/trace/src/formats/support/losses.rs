//! What the rows had that a format has no place for, counted while they are written and said at the end.

use crate::io::stream::ConversionLoss;
use crate::model::metadata::{Metadata, RequestTime};
use crate::model::request::{Flags, Request};
use crate::model::units::{Nanos, SECTOR_BYTES, Sector, Sectors};

/// The counts.
#[derive(Default)]
pub struct Losses {
    /// Requests left out because the format knows no such operation.
    pub others: u64,
    /// Requests for another device than the first, in a format without devices.
    pub devices: u64,
    flags: u64,
    times: u64,
    processes: u64,
    split: u64,
    too_long: u64,
    negative: u64,
    /// What is added to every time, so that the first is not negative; known with the first row.
    shift: Option<Nanos>,
}

impl Losses {
    /// The time of a request, from zero on, for a format without negative times. `None` for one that is to be left out.
    pub fn time(&mut self, at: Nanos) -> Option<u64> {
        let shift = *self.shift.get_or_insert(Nanos(at.0.min(0).saturating_neg()));
        let shifted = u64::try_from((at + shift).0).ok();
        self.negative += u64::from(shifted.is_none());
        shifted
    }

    /// What is added to every time: above zero where the first one is negative.
    pub fn shift(&self) -> Nanos {
        self.shift.unwrap_or_default()
    }

    /// The format has no flags.
    pub fn flags(&mut self, flags: Flags) -> &mut Self {
        self.flags += u64::from(flags != Flags::NONE);
        self
    }

    /// The format has no times beside that of the request itself.
    pub fn times(&mut self, request: &Request) -> &mut Self {
        self.times += u64::from(request.latency.is_some() || request.queued.is_some());
        self
    }

    /// The format has no processes.
    pub fn process(&mut self, request: &Request) -> &mut Self {
        self.processes += u64::from(request.pid.is_some() || !request.comm.as_str().is_empty());
        self
    }

    /// The format has lengths in 32 bits: see [`pieces`].
    pub fn length(&mut self, request: &Request) -> &mut Self {
        self.split += u64::from(request.sectors > LONGEST);
        self
    }

    /// Whether the request can be written in at most [`MOST_PIECES`] pieces; one that can't is counted and left out.
    pub fn fits(&mut self, request: &Request) -> bool {
        let fits = request.sectors.0.div_ceil(LONGEST.0) <= MOST_PIECES;
        self.too_long += u64::from(!fits);
        fits
    }

    /// The format has no devices.
    pub fn device(&mut self, request: &Request) -> &mut Self {
        self.devices += u64::from(request.device.0 > 0);
        self
    }

    /// All counts, with one warning for each.
    pub fn conversion_loss(&self, format: &str, metadata: &Metadata) -> ConversionLoss {
        ConversionLoss { rows: self.others + self.negative + self.too_long, warnings: self.sentences(format, metadata) }
    }

    fn sentences(&self, format: &str, metadata: &Metadata) -> Vec<String> {
        let counted = [
            (self.others, "requests were left out that do an operation it does not know (flush, discard, …)"),
            (self.negative, "requests were left out that lie before the first one in time"),
            (self.devices, "requests for other devices than the first are no longer told from those for the first"),
            (self.flags, "requests lost their flags (FUA, sync, metadata, …)"),
            (self.times, "requests lost the latency or the queueing time of the original"),
            (self.processes, "requests lost their process"),
            (self.too_long, "requests were left out that are longer than 255 TiB"),
            (self.split, "requests of 4 GiB and more are several now"),
        ];
        let mut said: Vec<String> = counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("the format {format} can't hold everything: {count} {what}"))
            .collect();
        if let Some(shift) = self.shift.filter(|shift| shift.0 > 0) {
            said.push(format!("the format {format} has no negative times: all are shifted by {shift}"));
        }
        if !metadata.complete {
            said.push(format!("the format {format} can't say that its source was cut short: nothing in it tells now"));
        }
        said
    }
}

/// The longest piece of a request whose bytes have room in 32 bits, in whole mebibytes: behind an odd one the next would be
/// none that a device with larger blocks can do.
const LONGEST: Sectors = Sectors(((1 << 32) - (1 << 20)) / SECTOR_BYTES);

/// Longer requests are no I/O but damage, and one row of them would fill a disk with pieces: 255.9 TiB.
const MOST_PIECES: u64 = 1 << 16;

/// The pieces of a request for a format that has lengths in 32 bits, in bytes; one, if it is not too long.
pub fn pieces(request: &Request) -> impl Iterator<Item = (Sector, Sectors)> + use<> {
    let (start, length) = (request.sector.0, request.sectors.0);
    let count = length.div_ceil(LONGEST.0).max(1);
    (0..count).map(move |piece| {
        let before = piece * LONGEST.0;
        (Sector(start + before), Sectors((length - before).min(LONGEST.0)))
    })
}

/// What is known of a load or a run as a whole, beside its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Whole {
    /// The text in front of it.
    Preamble,
    /// The moment of its zero.
    Epoch,
    /// What its devices are called.
    Names,
    /// How large they are.
    Sizes,
    /// That its times are those of the issue.
    RequestTime,
}

impl Whole {
    /// What it is called, if there is such a thing to lose.
    fn lost(self, of: &Metadata) -> Option<&'static str> {
        let (is_known, what) = match self {
            Self::Preamble => (
                !of.source.preamble.trim().is_empty(),
                "the text in front of the load (its licence, where it comes from)",
            ),
            Self::Epoch => {
                let run_began = of.run.as_ref().is_some_and(|run| run.started_unix_ns.known().is_some());
                (of.epoch_unix_ns.is_some() || run_began, "the date and time at which it began")
            }
            Self::Names => (of.devices.iter().any(|device| !device.name.is_empty()), "names of devices"),
            Self::Sizes => (of.devices.iter().any(|device| device.sectors.is_some()), "sizes of devices"),
            Self::RequestTime => {
                (of.request_time == RequestTime::Issued, "the word that its times are those of the issue")
            }
        };
        is_known.then_some(what)
    }
}

/// What a format has no place for of what is known of the load or run as a whole.
pub fn lost_of_whole(format: &str, has_no: &[Whole], metadata: &Metadata) -> Option<String> {
    let lost: Vec<&str> = has_no.iter().filter_map(|whole| whole.lost(metadata)).collect();
    (!lost.is_empty()).then(|| format!("the format {format} has no place for {}", lost.join(", nor for ")))
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{about, load, written};
    use crate::model::metadata::{Device, RequestTime};
    use crate::model::request::{Op, Request};
    use crate::model::units::{Nanos, Sector, Sectors};

    #[test]
    fn the_epoch_moves_when_times_do() {
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
    fn a_request_as_long_as_the_address_space_does_not_fill_the_disk() {
        let request = |sectors| Request::new(Nanos(0), Op::Write, Sector(0), Sectors(sectors));
        for format in ["fio-iolog", "blktrace"] {
            let rows = [request(1 << 53), request(8)];
            let (trace, said) = written(format, &rows, &about(&["8,0"]));
            assert!(trace.len() < 10_000, "{format}: {} bytes", trace.len());
            assert!(said.iter().any(|said| said.contains("1 requests were left out that are longer")), "{said:?}");
            assert_eq!(load(format, &trace).0.len(), 1, "{format}");
        }
    }

    #[test]
    fn what_is_known_of_the_whole_load_is_not_lost_without_a_word() {
        let rows = [Request { pid: Some(1), ..Request::new(Nanos(0), Op::Read, Sector(8), Sectors(8)) }];
        let of_origin = |format: &str, preamble: &str, epoch| {
            let mut about = crate::Metadata { epoch_unix_ns: epoch, ..about(&[""]) };
            about.source.preamble = preamble.to_owned();
            let said = written(format, &rows, &about).1.into_iter().filter(|said| said.contains("has no place for"));
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
    fn what_is_known_of_devices_and_times_is_not_lost_without_a_word() {
        let rows = [Request { pid: Some(1), ..Request::new(Nanos(0), Op::Read, Sector(8), Sectors(8)) }];
        for (format, lost) in [
            ("fio-iolog", ["", "sizes of devices", "the word that its times are those of the issue"]),
            ("spc", ["", "sizes of devices", "the word that its times are those of the issue"]),
            ("blkparse", ["", "sizes of devices", ""]),
            ("blktrace", ["", "sizes of devices", ""]),
            ("classic", ["names of devices", "sizes of devices", "the word that its times are those of the issue"]),
        ] {
            let abouts = [
                about(&["8,0"]),
                crate::Metadata { devices: vec![Device { sectors: Some(99), ..Device::default() }], ..about(&[]) },
                crate::Metadata { request_time: RequestTime::Issued, ..about(&[""]) },
            ];
            for (about, lost) in abouts.iter().zip(lost) {
                let said = written(format, &rows, about).1;
                let told = said.iter().find(|said| said.contains("has no place for"));
                assert_eq!(told.is_some(), !lost.is_empty(), "{format}: {said:?}");
                assert!(told.is_none_or(|told| told.ends_with(&format!("has no place for {lost}"))), "{told:?}");
            }
        }
    }
}
