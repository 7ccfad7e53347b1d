//! When a job makes its requests.

use super::job::Job;
use super::place::file_names;
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

/// Whether requests complete later than fio has submitted them.
pub fn is_asynchronous(job: &Job) -> Result<bool, String> {
    let is_null = matches!(engine(job), "null" | "cpp_null") && job.count("iodepth")?.unwrap_or(1) == 1;
    Ok(!SYNCHRONOUS.contains(&engine(job)) && !is_null && job.text("io_submit_mode") != Some("offload"))
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
        "{}: requests come at their times, whatever is outstanding; fio would delay those beyond iodepth={depth}",
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
