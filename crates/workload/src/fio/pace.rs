//! When a job makes its requests, and when it ends.

use super::job::Job;
use super::place::{Places, file_names};
use super::requests::{DISCARD, Directions, Part, READ, WRITE};
use crate::conversion::is_raw_device;

/// What makes a job ask for its next request.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// The completion of an earlier one.
    Closed {
        /// Requests at a time.
        depth: u64,
        /// A pause in microseconds, after so many requests.
        think: Option<(u64, u64)>,
    },
    /// The time.
    Open {
        /// Requests per second of reads, writes and discards.
        rates: [f64; 3],
        is_poisson: bool,
    },
}

/// When a job ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// In microseconds.
    pub start: u64,
    pub end: Option<u64>,
    /// Requests of each clone.
    pub requests: Option<u64>,
    /// Bytes of each clone's requests, if these have several sizes.
    pub bytes: Option<u64>,
    /// How often each clone covers the device, if its size is not known.
    pub passes: Option<u64>,
}

/// Engines whose calls return when the request has completed: one request at a time, whatever the depth.
const SYNCHRONOUS: &[&str] = &[
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "splice",
    "libpmem",
    "dev-dax",
    "pmemblk",
    "libzbc",
    "mtd",
    "libhdfs",
    "gfapi",
    "ime_psync",
    "ime_psyncv",
];

const ASYNCHRONOUS: &[&str] = &[
    "libaio",
    "io_uring",
    "io_uring_cmd",
    "posixaio",
    "windowsaio",
    "solarisaio",
    "guasi",
    "sg",
    "null",
    "rbd",
    "rados",
    "gfapi_async",
    "nbd",
    "libiscsi",
    "xnvme",
    "libblkio",
    "libcufile",
    "dfs",
    "ime_aio",
    "nfs",
    "cpp_null",
];

/// The engine of a job; fio's default depends on the system, which the names of files tell.
fn engine(job: &Job) -> &str {
    let is_windows = |name: &String| is_raw_device(name) && !name.starts_with('/') || name.contains(":\\");
    let default = match file_names(job) {
        Ok(Some(names)) if names.iter().any(is_windows) => "windowsaio",
        _ => "psync",
    };
    let engine = job.text("ioengine").unwrap_or(default);
    engine.split(':').next().unwrap_or_default()
}

/// The runtime of a job that ends with it alone, in microseconds.
pub fn end_of_time(job: &Job) -> Result<Option<u64>, String> {
    let runtime = job.micros("runtime", "s")?.filter(|time| *time > 0);
    // fio asks for a runtime, and goes on without time_based.
    Ok(if job.flag("time_based")? { runtime } else { None })
}

/// The requests at a time that the engine of a job really has outstanding.
///
/// # Errors
/// If the depth is none.
pub fn depth(job: &Job, notes: &mut Vec<String>) -> Result<u64, String> {
    let engine = engine(job);
    let depth = job.count("iodepth")?.unwrap_or(1);
    if depth > 1 << 20 {
        return Err(job.error("iodepth", "more than 1048576"));
    }
    let is_offloaded = match job.text("io_submit_mode").unwrap_or("inline") {
        "inline" => false,
        "offload" => true,
        _ => return Err(job.error("io_submit_mode", "it is inline or offload")),
    };
    if SYNCHRONOUS.contains(&engine) && !is_offloaded {
        if depth > 1 {
            let default = if job.has("ioengine") { "" } else { ", fio's default," };
            notes.push(format!(
                "{}: ioengine={engine}{default} has one request at a time; iodepth={depth} has no effect in fio either",
                job.name
            ));
        }
        return Ok(1);
    }
    if depth > 1 && !job.has("ioengine") {
        notes
            .push(format!("{}: ioengine={engine}, fio's default on Windows, has {depth} requests at a time", job.name));
    }
    if !SYNCHRONOUS.contains(&engine) && !ASYNCHRONOUS.contains(&engine) {
        notes.push(format!("{}: the engine {engine} is unknown, and taken as asynchronous", job.name));
    }
    Ok(depth)
}

/// # Errors
/// If a program cannot say it.
pub fn pace(job: &Job, directions: Directions, parts: &[Part], notes: &mut Vec<String>) -> Result<Pace, String> {
    let depth = depth(job, notes)?;
    let think = job.micros("thinktime", "us")?.filter(|time| *time > 0);
    let blocks = job.number("thinktime_blocks")?.unwrap_or(1).max(1);
    let rates = rates(job, directions, parts)?;
    let Some(rates) = rates else {
        // A pause begins when all requests before it have completed.
        let depth = if think.is_some() { depth.min(blocks) } else { depth };
        return Ok(Pace::Closed { depth, think: think.map(|time| (time, blocks)) });
    };
    if think.is_some() {
        return Err(
            job.error("thinktime", "together with a rate, which already says when requests come; use one of them")
        );
    }
    let is_poisson = match job.text("rate_process").unwrap_or("linear") {
        "linear" => false,
        "poisson" => true,
        _ => return Err(job.error("rate_process", "it is linear or poisson")),
    };
    notes.push(format!(
        "{}: requests come at their times, whatever is outstanding; fio would delay those beyond {depth}",
        job.name
    ));
    Ok(Pace::Open { rates, is_poisson })
}

/// Requests per second of each direction; `None` if no rate is set.
fn rates(job: &Job, directions: Directions, parts: &[Part]) -> Result<Option<[f64; 3]>, String> {
    let above_zero = |text: &str| job.number_of(text).map(|rate| rate as f64);
    let (bytes, requests) = (job.triple("rate", above_zero)?, job.triple("rate_iops", above_zero)?);
    if job.has("rate") && job.has("rate_iops") {
        return Err(job.error("rate_iops", "together with rate, which fio refuses too; use one of them"));
    }
    let mut rates = [0.0; 3];
    let mut unlimited = Vec::new();
    for direction in [READ, WRITE, DISCARD] {
        if directions.weights[direction] == 0.0 {
            continue;
        }
        let size = parts.iter().find(|part| part.direction == direction).map_or(4096.0, |part| part.sizes.mean());
        let by_bytes = bytes[direction].filter(|rate| *rate > 0.0).map(|rate| rate / size);
        match by_bytes.or(requests[direction]).filter(|rate| *rate > 0.0) {
            Some(rate) => rates[direction] = rate,
            None => unlimited.push(["reads", "writes", "trims"][direction]),
        }
    }
    if rates == [0.0; 3] {
        return Ok(None);
    }
    let option = if job.has("rate") { "rate" } else { "rate_iops" };
    if let Some(unlimited) = unlimited.first() {
        return Err(job.error(option, &format!("{unlimited} have no rate; set one, or write a job for each direction")));
    }
    if directions.is_trimwrite {
        return Err(job.error(option, "together with rw=trimwrite; remove one of them"));
    }
    Ok(Some(rates))
}

/// # Errors
/// If a program cannot say it.
pub fn limits(job: &Job, parts: &[Part], places: &Places, notes: &mut Vec<String>) -> Result<Limits, String> {
    let start = job.parsed("startdelay", |text| match text.contains(['-', ':']) {
        true => Err("a random time; write one time".into()),
        false => super::values::micros(text, "s"),
    });
    let start = start?.unwrap_or(0);
    let runtime = job.micros("runtime", "s")?.filter(|time| *time > 0);
    let ramp = job.micros("ramp_time", "s")?.unwrap_or(0);
    let is_time_based = end_of_time(job)?.is_some();
    let end = runtime.map(|runtime| start + ramp + runtime);
    if ramp > 0 {
        let ramp = super::values::time_text(ramp);
        notes.push(format!("{}: the first {ramp} are fio's ramp_time; the run has them as well", job.name));
    }
    let loops = job.count("loops")?.unwrap_or(1);
    let percent = |text: &str| {
        text.strip_suffix('%')
            .map(|percent| percent.trim().parse::<f64>().map_err(|_| format!("`{text}` is not a percentage")))
    };
    let io_size = job.parsed("io_size", |text| match (percent(text), places.size) {
        (None, _) => job.number_of(text).map(Some),
        (Some(share), Some(bytes)) => Ok(Some((bytes as f64 * share? / 100.0) as u64)),
        (Some(_), None) => Err("a percentage of a size that is not known; set size in bytes".into()),
    })?;
    let io_size = io_size.flatten().filter(|bytes| *bytes > 0);
    let total = io_size.or(places.size).map(|bytes| bytes as f64 * loops as f64);
    let weight: f64 = parts.iter().map(|part| part.weight).sum();
    let mean = parts.iter().map(|part| part.sizes.mean() * part.weight).sum::<f64>() / weight;
    let is_one = parts.iter().all(|part| part.sizes.is_one() && part.sizes.largest() == parts[0].sizes.largest());
    let number = job.number("number_ios")?.filter(|number| *number > 0);
    let is_whole = total.is_none() && !is_time_based;
    let total = total.filter(|_| !is_time_based);
    let files = places.files * places.regions[0].len() as u64;
    let of_bytes = total.filter(|_| is_one).map(|total| {
        // A random job without a map of blocks does not end where it has covered its files.
        let covers = !(job.flag("norandommap")? && parts.iter().any(|part| part.positions == "uniform"));
        let pass = places.bytes.map(|bytes| (bytes as f64 / files as f64 / mean).floor() * files as f64);
        Ok::<_, String>(match pass.filter(|pass| covers && *pass >= 1.0) {
            Some(pass) if io_size.is_none() => pass * loops as f64,
            pass => blocks(total / mean, pass.unwrap_or(f64::INFINITY)),
        })
    });
    let of_bytes = of_bytes.transpose()?.map(|blocks| blocks.clamp(1.0, 1e18) as u64);
    let requests = of_bytes.into_iter().chain(number).min();
    // The number of requests of several sizes depends on how they are drawn.
    let bytes = places.size.filter(|_| !is_one && !is_time_based).map(|size| {
        let least = parts.iter().map(|part| part.least).min().unwrap_or(512);
        let covers = ["sequential", "random-map"].map(str::to_owned);
        let covers = parts.iter().all(|part| covers.contains(&part.positions) || part.positions.starts_with("files"));
        let pass = if covers { files * covered(size / files.max(1), least, parts) } else { size };
        let largest = parts.iter().map(|part| part.sizes.largest()).max().unwrap_or(512);
        match io_size {
            None => pass.saturating_mul(loops),
            Some(limit) if covers => bytes_of(limit.saturating_mul(loops), pass, largest),
            Some(limit) => limit.saturating_mul(loops),
        }
    });
    // The last request goes beyond the limit.
    let bytes = bytes.map(|bytes| bytes.clamp(512, 1 << 60).next_multiple_of(512));
    let passes = is_whole.then_some(loops);
    Ok(Limits { start, end, requests, bytes, passes })
}

/// The bytes of a file that a pass has issued when no further request fits.
fn covered(file: u64, least: u64, parts: &[Part]) -> u64 {
    match parts.iter().all(|part| part.sizes.unit().is_multiple_of(least)) {
        true => file / least * least,
        false => (file.saturating_sub(least) / 512 + 1) * 512,
    }
}

/// Bytes until fio has issued so many: it does not begin another pass for less than a request of the largest size.
fn bytes_of(limit: u64, pass: u64, largest: u64) -> u64 {
    let passes = if limit > largest { (limit - largest) / pass.max(1) + 1 } else { 1 };
    limit.min(passes.saturating_mul(pass))
}

/// Requests until fio has issued so many blocks: the last one goes beyond the limit. After a `pass` over its files, it does not
/// begin another one for less than a block.
fn blocks(limit: f64, pass: f64) -> f64 {
    let passes = (limit / pass).floor();
    let rest = if passes == 0.0 { limit } else { limit - passes * pass };
    if passes > 0.0 && rest < 1.0 { passes * pass } else { limit.ceil() }
}
