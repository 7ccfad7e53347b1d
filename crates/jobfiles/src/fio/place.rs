//! Where a job's requests go: devices, and regions of them.

use super::job::Job;
use crate::conversion::{Devices, Extent, Region, is_raw_device};

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
    /// The bytes of each file, if that is known.
    pub file: Option<u64>,
    /// The bytes of a pass over the files.
    pub size: Option<u64>,
    /// In bytes; 0 if it is a percentage.
    pub offset: u64,
    /// Whether the device goes on behind the job's size.
    pub goes_on: bool,
}

impl Places {
    pub fn all_files(&self) -> u64 {
        self.files * self.regions[0].len() as u64
    }
}

/// More clones with regions of their own than this would make the text too long to read.
const MAX_STREAMS: u64 = 256;
/// No device is larger.
const MAX_BYTES: u64 = 1 << 60;
const MAX_CLONES: u64 = 1 << 20;

/// Where the requests of a job go.
///
/// # Errors
/// If a program cannot say it.
pub fn places(job: &Job, devices: &mut Devices) -> Result<Places, String> {
    let clones = job.count("numjobs")?.unwrap_or(1);
    if clones > MAX_CLONES {
        return Err(job.error("numjobs", &format!("more than {MAX_CLONES}")));
    }
    let parsed = |option| job.parsed(option, |text| extent(job, text));
    let place = |option| match parsed(option)? {
        Some(Extent::Bytes(bytes)) if bytes % 512 != 0 => {
            let sizes = format!("{bytes} bytes are not a multiple of 512, the size of a sector; use one that is");
            Err(job.error(option, &sizes))
        }
        place => Ok(place),
    };
    let offset = place("offset")?.unwrap_or(Extent::START);
    let offset = if offset == Extent::Percent(0.0) { Extent::START } else { offset };
    let increment = place("offset_increment")?.filter(|step| clones > 1 && !matches!(step, Extent::Bytes(0)));
    let names = file_names(job)?;
    let files = match &names {
        // fio makes no further files beside named ones.
        Some(names) => names.len() as u64,
        None => job.count("nrfiles")?.unwrap_or(1),
    };
    let size = parsed("size")?.filter(|size| *size != Extent::Bytes(0));
    let file_size = file_size(job, offset, increment.is_some())?;
    let exact = match (file_size, size) {
        (Some(_), Some(Extent::Percent(_))) => return Err(job.error("size", "a percentage of filesize; write bytes")),
        (Some(bytes), _) => Some(bytes),
        (None, Some(Extent::Bytes(bytes))) => Some(bytes / files),
        (None, _) => None,
    };
    let option = if file_size.is_some() { "filesize" } else { "size" };
    if exact.is_some_and(|bytes| bytes < 512) {
        return Err(job.error(option, "less than a sector for each file; set a larger size"));
    }
    if exact.is_some_and(|bytes| bytes.saturating_mul(files) > MAX_BYTES) {
        return Err(job.error(option, "too large"));
    }
    let inside = if names.as_ref().is_some_and(|names| names.len() > 1) { 1 } else { files };
    // Requests are whole sectors.
    let bytes = exact.map(|bytes| bytes / 512 * 512);
    let length = bytes.map(|bytes| Extent::Bytes(bytes * inside)).or(size);
    let all = exact.map(|bytes| bytes * files);
    let size_of_pass = match (size, all) {
        (Some(Extent::Bytes(size)), Some(all)) => Some(size.min(all)),
        (_, all) => all,
    };
    // fio's engine null does not look at the end of filesize.
    let goes_on = names.as_ref().is_some_and(|names| names.iter().all(|name| is_raw_device(name)))
        || file_size.is_some() && job.text("ioengine") == Some("null");
    let base = Places {
        clones,
        regions: Vec::new(),
        is_own: false,
        files: inside,
        file: exact,
        size: size_of_pass,
        offset: if let Extent::Bytes(offset) = offset { offset } else { 0 },
        goes_on,
    };
    let Some(names) = names else { return own_files(job, devices, base, length, offset) };
    let region = |devices: &mut Devices, name: &str, from: Extent| -> Result<Region, String> {
        let mixed = "an offset in bytes and a size in percent, or the reverse; write both in the same way";
        let to = length.map(|length| length.after(from).ok_or_else(|| job.error("offset", mixed))).transpose()?;
        let end = match to {
            Some(Extent::Bytes(end)) if !is_raw_device(name) => Some(end),
            _ => None,
        };
        let (to, base) = (
            to.filter(|to| *to != Extent::Percent(100.0)),
            name.rsplit(['/', '\\']).find(|base| !base.is_empty()).unwrap_or(name),
        );
        Ok(Region { device: devices.number(name, base, end), from, to })
    };
    let all = |devices: &mut Devices, from| {
        names.iter().map(|name| region(devices, name, from)).collect::<Result<Vec<_>, _>>()
    };
    let places = |regions, is_own| Places { regions, is_own, ..base };
    let Some(increment) = increment else {
        return Ok(places(vec![all(devices, offset)?], false));
    };
    if clones > MAX_STREAMS {
        return Err(job.error("offset_increment", &format!("more than {MAX_STREAMS} jobs with offsets of their own")));
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
        let from = from(clone).filter(|from| !matches!(from, Extent::Bytes(MAX_BYTES..))).ok_or_else(wrong)?;
        if matches!(from, Extent::Percent(100.0..)) {
            return Err(too_far());
        }
        all(devices, if from == Extent::Percent(0.0) { Extent::START } else { from })
    });
    let regions = regions.collect::<Result<Vec<_>, _>>()?;
    let is_adjacent = names.len() == 1 && length == Some(increment);
    match (is_adjacent, &regions[0][0], &regions[regions.len() - 1][0]) {
        (true, first, last) => Ok(places(vec![vec![Region { to: last.to, ..*first }]], true)),
        _ => Ok(places(regions, false)),
    }
}

/// The bytes of each file by `filesize`: from the offset on.
fn file_size(job: &Job, offset: Extent, is_incremented: bool) -> Result<Option<u64>, String> {
    let bytes = job.parsed("filesize", |text| match text.split_once(['-', ':']) {
        None => job.number_of(text),
        Some((one, other)) => match (job.number_of(one)?, job.number_of(other)?) {
            (one, other) if one == other => Ok(one),
            _ => Err("fio draws the size of each file; a program's files have one size; write one".into()),
        },
    })?;
    let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else { return Ok(None) };
    match offset {
        _ if is_incremented => Err(job.error("filesize", "with offset_increment, each job has less of it; set size")),
        Extent::Bytes(offset) if offset < bytes => Ok(Some(bytes - offset)),
        Extent::Bytes(_) => Err(job.error("offset", "behind the end of filesize; use a smaller one")),
        Extent::Percent(_) => Err(job.error("offset", "a percentage together with filesize; write bytes")),
    }
}

/// Each clone has files of its own, side by side on one device.
fn own_files(
    job: &Job,
    devices: &mut Devices,
    base: Places,
    length: Option<Extent>,
    offset: Extent,
) -> Result<Places, String> {
    let clones = base.clones;
    if clones > 1 && job.has("offset_increment") {
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
    let end = bytes.checked_mul(clones).and_then(|all| all.checked_add(offset)).filter(|end| *end < MAX_BYTES);
    let end = end.ok_or_else(|| job.error("size", "too large"))?;
    // Jobs have files of their own even if they have the same name.
    let device = devices.number(&format!("\0{}:{}", job.place, job.name), &job.name, Some(end));
    let region = Region { device, from: Extent::Bytes(offset), to: Some(Extent::Bytes(end)) };
    Ok(Places { regions: vec![vec![region]], is_own: clones > 1, ..base })
}

/// The files that all clones share; `None` if each clone has its own.
pub(super) fn file_names(job: &Job) -> Result<Option<Vec<String>>, String> {
    let directory = job.text("directory").unwrap_or_default().trim_end_matches('/');
    let in_directory = |name: &str| {
        if directory.is_empty() { name.to_owned() } else { format!("{directory}/{}", name.trim_start_matches('/')) }
    };
    if let Some(names) = job.text("filename") {
        // A colon of the name itself has a backslash before it.
        let names: Vec<String> =
            names.replace("\\:", "\0").split(':').map(|name| in_directory(&name.replace('\0', ":"))).collect();
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
        .map(|format| vec![in_directory(&format.replace("$jobname", &job.name).replace("$filenum", "0"))]))
}

/// Bytes, or a percentage of the device.
fn extent(job: &Job, text: &str) -> Result<Extent, String> {
    if text.ends_with(['z', 'Z']) {
        return Err("zones of a zoned block device; write bytes or a percentage".into());
    }
    let Some(percent) = text.strip_suffix('%') else { return job.number_of(text).map(Extent::Bytes) };
    let percent = percent.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.map(Extent::Percent).ok_or_else(|| format!("`{text}` is not a percentage"))
}
