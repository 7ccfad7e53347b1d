//! Where a job's requests go: devices, and regions of them.

use super::job::Job;
use crate::conversion::bytes_text;

/// A position: bytes, or a percentage of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extent {
    Bytes(u64),
    Percent(f64),
}

impl Extent {
    pub const START: Self = Self::Bytes(0);

    pub fn text(self) -> String {
        match self {
            Self::Bytes(bytes) => bytes_text(bytes),
            Self::Percent(percent) => format!("{percent}%"),
        }
    }

    fn parse(job: &Job, text: &str) -> Result<Self, String> {
        if text.ends_with(['z', 'Z']) {
            return Err("zones of a zoned block device; write bytes or a percentage".into());
        }
        let Some(percent) = text.strip_suffix('%') else { return job.number_of(text).map(Self::Bytes) };
        let percent = percent.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        percent.map(Self::Percent).ok_or_else(|| format!("`{text}` is not a percentage"))
    }

    /// This far behind another.
    fn after(self, from: Self) -> Option<Self> {
        match (from, self) {
            (Self::START, to) => Some(to),
            (Self::Bytes(from), Self::Bytes(length)) => Some(Self::Bytes(from + length)),
            // A size of 10 % is a share of what is behind the offset.
            (Self::Percent(from), Self::Percent(length)) => Some(Self::Percent(from + (100.0 - from) * length / 100.0)),
            _ => None,
        }
    }
}

/// A part of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Its number in [`Devices`].
    pub device: usize,
    pub from: Extent,
    /// `None`: to the end.
    pub to: Option<Extent>,
}

impl Region {
    /// As in a program; `None` for the whole device.
    pub fn text(&self, devices: &Devices) -> Option<String> {
        match (self.from, self.to) {
            (Extent::START, None) => None,
            (Extent::START, Some(Extent::Bytes(end))) if devices.0[self.device].size == Some(end) => None,
            (Extent::START, Some(to)) => Some(to.text()),
            (from, to) => Some(format!("{}..{}", from.text(), to.map(Extent::text).unwrap_or_default())),
        }
    }

    /// Its length in bytes, if that is known.
    pub fn bytes(&self) -> Option<u64> {
        match (self.from, self.to) {
            (Extent::Bytes(from), Some(Extent::Bytes(to))) => Some(to - from),
            _ => None,
        }
    }

    /// A part of it, from one share to another (0 to 1), in multiples of `unit` bytes. `None` if its size is not known.
    pub fn part(&self, from: f64, to: f64, unit: u64) -> Option<Self> {
        let is_end = to > 1.0 - 1e-9;
        if let Some(bytes) = self.bytes() {
            let Extent::Bytes(first) = self.from else { return None };
            let at = |share: f64| Extent::Bytes(first + (bytes as f64 * share) as u64 / unit * unit);
            return Some(Self { from: at(from), to: if is_end { self.to } else { Some(at(to)) }, ..*self });
        }
        let (start, end) = match (self.from, self.to) {
            (Extent::START, None) => (0.0, 100.0),
            (Extent::START, Some(Extent::Percent(end))) => (0.0, end),
            (Extent::Percent(start), None) => (start, 100.0),
            (Extent::Percent(start), Some(Extent::Percent(end))) => (start, end),
            _ => return None,
        };
        // Shares as people write them: 4.8 %, not 4.800000000000001 %.
        let at = |share: f64| Extent::Percent(((start + (end - start) * share) * 1e9).round() / 1e9);
        let from = if from == 0.0 { self.from } else { at(from) };
        Some(Self { from, to: if is_end { self.to } else { Some(at(to)) }, ..*self })
    }
}

/// The devices of all jobs.
#[derive(Debug, Default)]
pub struct Devices(Vec<Device>);

#[derive(Debug)]
struct Device {
    /// What tells it from others.
    identity: String,
    name: String,
    /// In bytes; `None`: a share of the target.
    size: Option<u64>,
}

impl Devices {
    /// The number of a device that has at least this many bytes, or an unknown number of them.
    pub fn number(&mut self, identity: &str, name: &str, bytes: Option<u64>) -> usize {
        if let Some(number) = self.0.iter().position(|device| device.identity == identity) {
            let size = &mut self.0[number].size;
            *size = size.zip(bytes).map(|(one, other)| one.max(other));
            return number;
        }
        let names = |name: &str| self.0.iter().any(|device| device.name == name);
        let mut unique = name.replace('$', "_");
        for number in 2.. {
            if !names(&unique) {
                break;
            }
            unique = format!("{}-{number}", name.replace('$', "_"));
        }
        self.0.push(Device { identity: identity.to_owned(), name: unique, size: bytes });
        self.0.len() - 1
    }

    pub fn name(&self, number: usize) -> &str {
        &self.0[number].name
    }

    pub fn is_one(&self) -> bool {
        self.0.len() == 1
    }

    /// Each with its size, as in a program. One device of unknown size is the whole target.
    pub fn texts(&self) -> Vec<(String, String)> {
        let shares = self.0.iter().filter(|device| device.size.is_none()).count();
        if shares == 1 && self.is_one() {
            return Vec::new();
        }
        // Beside devices of known sizes, the others leave a part of the target for them.
        let parts = shares + usize::from(shares < self.0.len());
        let share = format!("{}%", 100.0 / parts as f64);
        let texts =
            self.0.iter().map(|device| (device.name.clone(), device.size.map_or_else(|| share.clone(), bytes_text)));
        texts.collect()
    }
}

/// Where the requests of a job go.
#[derive(Debug)]
pub struct Places {
    /// The clones of the job (`numjobs`).
    pub clones: u64,
    /// Devices from which each request chooses one; one list for all clones, or one for each clone.
    pub regions: Vec<Vec<Region>>,
    /// Whether each clone has its own, equal part of the region.
    pub is_own: bool,
    /// Files side by side in a region.
    pub files: u64,
    /// The bytes of a clone's files, if that is known.
    pub bytes: Option<u64>,
}

/// More clones with regions of their own than this would make a text that nobody reads.
const MOST_STREAMS: u64 = 256;
/// No device is larger.
const MOST_BYTES: u64 = 1 << 60;
const MOST_CLONES: u64 = 1 << 20;

/// Where the requests of a job go.
///
/// # Errors
/// If a program cannot say it.
pub fn places(job: &Job, devices: &mut Devices) -> Result<Places, String> {
    let clones = job.count("numjobs")?.unwrap_or(1);
    if clones > MOST_CLONES {
        return Err(job.error("numjobs", &format!("more than {MOST_CLONES}")));
    }
    let extent = |option| job.parsed(option, |text| Extent::parse(job, text));
    let offset = extent("offset")?.unwrap_or(Extent::START);
    let offset = if offset == Extent::Percent(0.0) { Extent::START } else { offset };
    let increment = extent("offset_increment")?.filter(|step| !matches!(step, Extent::Bytes(0)));
    let names = file_names(job)?;
    let files = match &names {
        Some(names) if names.len() > 1 => names.len() as u64,
        _ => job.count("nrfiles")?.unwrap_or(1),
    };
    let size = extent("size")?.filter(|size| *size != Extent::Bytes(0));
    let per_file = match (job.number("filesize")?, size) {
        (Some(bytes), _) if bytes > 0 => Some(Extent::Bytes(bytes)),
        (_, Some(Extent::Bytes(bytes))) => match bytes / files {
            0 => return Err(job.error("size", "less than a byte for each file; set a larger size")),
            bytes => Some(Extent::Bytes(bytes)),
        },
        (_, size) => size,
    };
    let length = |per_file| match per_file {
        Some(Extent::Bytes(bytes)) if names.as_ref().is_none_or(|names| names.len() < 2) => {
            Some(Extent::Bytes(bytes * files))
        }
        other => other,
    };
    let length = length(per_file);
    let bytes = match per_file {
        Some(Extent::Bytes(bytes)) => Some(bytes.saturating_mul(files)),
        _ => None,
    };
    let inside = if names.as_ref().is_some_and(|names| names.len() > 1) { 1 } else { files };
    let Some(names) = names else { return own_files(job, devices, clones, length, offset, inside) };
    let region = |devices: &mut Devices, name: &str, from: Extent| -> Result<Region, String> {
        let mixed = "an offset in bytes and a size in percent, or the reverse; write both in the same way";
        let to = length.map(|length| length.after(from).ok_or_else(|| job.error("offset", mixed))).transpose()?;
        let end = match to {
            Some(Extent::Bytes(end)) if !name.starts_with("/dev/") => Some(end),
            _ => None,
        };
        let (to, base) = (to.filter(|to| *to != Extent::Percent(100.0)), name.rsplit('/').next().unwrap_or(name));
        Ok(Region { device: devices.number(name, base, end), from, to })
    };
    let all = |devices: &mut Devices, from| {
        names.iter().map(|name| region(devices, name, from)).collect::<Result<Vec<_>, _>>()
    };
    let places = |regions, is_own| Places { clones, regions, is_own, files: inside, bytes };
    let Some(increment) = increment.filter(|_| clones > 1) else {
        return Ok(places(vec![all(devices, offset)?], false));
    };
    if clones > MOST_STREAMS {
        return Err(job.error("offset_increment", &format!("more than {MOST_STREAMS} jobs with offsets of their own")));
    }
    let from = |clone: u64| match (offset, increment) {
        (Extent::Bytes(offset), Extent::Bytes(step)) => {
            step.checked_mul(clone).map(|step| Extent::Bytes(offset + step))
        }
        (Extent::START, Extent::Percent(step)) => Some(Extent::Percent(step * clone as f64)),
        (Extent::Percent(offset), Extent::Percent(step)) => Some(Extent::Percent(offset + step * clone as f64)),
        _ => None,
    };
    let wrong = || job.error("offset_increment", "bytes and percent together; write offset and it in the same way");
    let too_far = || job.error("offset_increment", "the last job starts behind the end of the device");
    let regions = (0..clones).map(|clone| {
        let from = from(clone).filter(|from| !matches!(from, Extent::Bytes(MOST_BYTES..))).ok_or_else(wrong)?;
        if matches!(from, Extent::Percent(100.0..)) {
            return Err(too_far());
        }
        all(devices, if from == Extent::Percent(0.0) { Extent::START } else { from })
    });
    let regions = regions.collect::<Result<Vec<_>, _>>()?;
    let is_adjacent = names.len() == 1 && bytes.map(Extent::Bytes) == Some(increment);
    match (is_adjacent, &regions[0][0], &regions[regions.len() - 1][0]) {
        (true, first, last) => Ok(places(vec![vec![Region { to: last.to, ..*first }]], true)),
        _ => Ok(places(regions, false)),
    }
}

/// Each clone has files of its own, side by side on one device.
fn own_files(
    job: &Job,
    devices: &mut Devices,
    clones: u64,
    length: Option<Extent>,
    offset: Extent,
    files: u64,
) -> Result<Places, String> {
    if job.has("offset_increment") {
        return Err(job.error("offset_increment", "each job has a file of its own; set filename, or remove it"));
    }
    let bytes = match length {
        Some(Extent::Bytes(bytes)) => bytes,
        Some(Extent::Percent(_)) => {
            return Err(job.error("size", "a percentage of a file that fio makes; set filename, or bytes"));
        }
        None => return Err(job.error("size", "missing: the job has neither a size nor a filename; add one of them")),
    };
    let Extent::Bytes(offset) = offset else {
        return Err(job.error("offset", "a percentage of a file that fio makes; set filename, or bytes"));
    };
    // Among several files side by side, an offset would only move all of them.
    let offset = if clones == 1 { offset } else { 0 };
    let end = bytes.checked_mul(clones).and_then(|all| all.checked_add(offset)).filter(|end| *end < MOST_BYTES);
    let end = end.ok_or_else(|| job.error("size", "too large"))?;
    // Jobs have files of their own even if they have the same name.
    let device = devices.number(&format!("\0{}:{}", job.place, job.name), &job.name, Some(end));
    let region = Region { device, from: Extent::Bytes(offset), to: Some(Extent::Bytes(end)) };
    Ok(Places { clones, regions: vec![vec![region]], is_own: clones > 1, files, bytes: Some(bytes) })
}

/// The files that all clones share; `None` if each clone has its own.
fn file_names(job: &Job) -> Result<Option<Vec<String>>, String> {
    let folder = job.text("directory").unwrap_or_default().trim_end_matches('/');
    let in_folder = |name: &str| {
        if name.starts_with('/') || folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
    };
    if let Some(names) = job.text("filename") {
        // A colon of the name itself has a backslash before it.
        let names: Vec<String> =
            names.replace("\\:", "\0").split(':').map(|name| in_folder(&name.replace('\0', ":"))).collect();
        if let Some(special) = names.iter().find(|name| name.is_empty() || *name == "-" || name.ends_with("/-")) {
            return Err(job.error("filename", &format!("`{special}` is not a device or a file")));
        }
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        return if once.len() == names.len() {
            Ok(Some(names))
        } else {
            Err(job.error("filename", "a file is in it twice"))
        };
    }
    // These have one device of a known size, which other options name.
    if let Some(engine @ ("rbd" | "nbd" | "libiscsi")) = job.text("ioengine") {
        return Ok(Some(vec![format!("/dev/{engine}")]));
    }
    Ok(job
        .text("filename_format")
        .filter(|format| !format.contains("$jobnum"))
        .map(|format| vec![in_folder(&format.replace("$jobname", &job.name).replace("$filenum", "0"))]))
}
