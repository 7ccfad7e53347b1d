//! When a job has made all of its requests: fio's passes over its files, until one of them brings too little.

use iosonar_trace::human;

use super::job::Job;
use super::pace::{end_of_time, is_asynchronous};
use super::place::Places;
use super::requests::{Directions, Part, READ, WRITE};
use super::sizes::largest;
use crate::conversion::greatest_common_divisor;

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
    /// The bytes at the beginning of the only file, to which all requests go.
    pub span: Option<u64>,
}

/// # Errors
/// If a program cannot say it.
pub fn limits(
    job: &Job,
    directions: &Directions,
    parts: &[Part],
    places: &Places,
    notes: &mut Vec<String>,
) -> Result<Limits, String> {
    let start = job.parsed("startdelay", |text| match text.contains(['-', ':']) {
        true => Err("a random time; write one time".into()),
        false => super::values::micros(text, "s"),
    });
    let start = start?.unwrap_or(0);
    let runtime = job.micros("runtime", "s")?.filter(|time| *time > 0);
    let ramp = job.micros("ramp_time", "s")?.unwrap_or(0);
    let end = runtime.map(|runtime| start + ramp + runtime);
    if ramp > 0 {
        let ramp = super::values::time_text(ramp);
        notes.push(format!("{}: the first {ramp} are fio's ramp_time; the run has them as well", job.name));
    }
    let limits = Limits { start, end, ..Limits::default() };
    if end_of_time(job)?.is_some() {
        return Ok(limits);
    }
    let loops = job.count("loops")?.unwrap_or(1);
    let number = job.number("number_ios")?.filter(|number| *number > 0);
    let io_size = io_size(job, places)?;
    if directions.is_trimwrite && number.is_some() && (loops > 1 || io_size.is_some()) {
        let why = "with rw=trimwrite and several passes, fio doubles it with each pass; remove loops and io_size";
        return Err(job.error("number_ios", why));
    }
    let number = number.map(|number| number.saturating_mul(loops));
    let Some(size) = places.size.or(io_size) else {
        return Ok(Limits { requests: number, passes: Some(loops), ..limits });
    };
    let is_mixed = directions.is_mixed && !directions.is_random;
    let is_both = directions.weights[READ] > 0.0 && directions.weights[WRITE] > 0.0;
    // Reads and writes each have a sequence, which covers its part of the files, or wraps around.
    let wraps = is_mixed && (is_both || io_size.is_some_and(|limit| limit > size));
    let cover = if wraps { None } else { cover(job, directions, parts, places)? };
    let has_no_map = directions.is_random && !parts.iter().any(Part::has_map);
    let of_pass = match is_mixed || has_no_map && directions.writes() {
        // fio counts the bytes of a pass only if requests complete later than they are submitted.
        _ if !is_asynchronous(job)? => u64::MAX,
        true => size.max(io_size.unwrap_or(0)),
        false => size,
    };
    let of_pass = match directions.is_trimwrite {
        // The discards count as well, but the writes end the job.
        true => of_pass.saturating_add(io_size.unwrap_or(size).saturating_mul(loops)) / 2,
        false => of_pass,
    };
    let is_one = parts.iter().all(|part| part.sizes.is_one() && part.sizes.largest() == parts[0].sizes.largest());
    let block = if is_one { parts[0].sizes.largest() } else { 1 };
    let largest = largest(job)?;
    let counts = Counts {
        pass: cover.unwrap_or(u64::MAX).min(of_pass.div_ceil(block)),
        most: io_size.unwrap_or(size).saturating_mul(loops).div_ceil(block),
        number: number.filter(|_| is_one),
        enough: io_size.map(|limit| (limit, largest, block * if directions.is_trimwrite { 2 } else { 1 })),
        loops,
    };
    let done = counts.all().clamp(1, 1 << 60);
    let mut limits = limits;
    let file = places.file.unwrap_or(0);
    if is_one && !directions.is_random && places.goes_on && !file.is_multiple_of(block) {
        limits.span = Some(file.next_multiple_of(block));
    }
    // A pass of no requests is refused later, by its span.
    let is_counted = is_one && !directions.is_mixed && (1..u64::MAX).contains(&counts.pass);
    if let Some(every) = every(job)?.filter(|_| is_counted) {
        // The last write of a pass brings two flushes; that of the job brings none, unless something of the file is left.
        let both = counts.pass / greatest_common_divisor(counts.pass, every) * every;
        let leaves_rest = cover == Some(counts.pass) && counts.pass < size.div_ceil(block);
        let more = if leaves_rest { done / both } else { (done - 1) / both };
        if more > 0 {
            let times = human::counted(more, "time");
            notes.push(format!("{}: fio flushes {times} more, once after the last write of a pass", job.name));
        }
    }
    if done > counts.pass && cover != Some(counts.pass) && !has_no_map {
        // fio begins again before it has covered its files.
        if is_one && !directions.is_random && !is_mixed && places.all_files() == 1 && directions.skip(job)?.is_none() {
            limits.span = Some(counts.pass * block);
        } else {
            notes.push(format!(
                "{}: fio begins again before it has covered its files; the program's positions go on where they were",
                job.name
            ));
        }
    }
    Ok(match is_one {
        true => Limits { requests: Some(done), ..limits },
        // The last request goes beyond the limit.
        false => Limits { requests: number, bytes: Some(done.max(512).next_multiple_of(512)), ..limits },
    })
}

/// The writes after which a flush follows.
fn every(job: &Job) -> Result<Option<u64>, String> {
    Ok(job.number("fsync")?.or(job.number("fdatasync")?).filter(|every| *every > 0))
}

/// In bytes.
fn io_size(job: &Job, places: &Places) -> Result<Option<u64>, String> {
    let io_size = job.parsed("io_size", |text| {
        let Some(percent) = text.strip_suffix('%') else { return job.number_of(text) };
        let share = percent.trim().parse::<f64>().map_err(|_| format!("`{text}` is not a percentage"))?;
        let size = places.size.ok_or("a percentage of a size that is not known; set size in bytes")?;
        Ok((size as f64 * share / 100.0) as u64)
    })?;
    Ok(io_size.filter(|bytes| *bytes > 0))
}

/// Requests, or bytes if requests have several sizes.
struct Counts {
    /// Of a pass.
    pass: u64,
    /// Of all passes.
    most: u64,
    number: Option<u64>,
    /// With io_size, in bytes: fio begins another pass until less than the largest request is left of it. The last number is
    /// what fio counts for each of `pass`.
    enough: Option<(u64, u64, u64)>,
    loops: u64,
}

impl Counts {
    fn all(&self) -> u64 {
        let most = self.most.min(self.number.unwrap_or(u64::MAX));
        let done = self.pass.saturating_mul(self.loops).min(most);
        let Some((limit, largest, each)) = self.enough else { return done };
        match limit.saturating_sub(done.saturating_mul(each)).checked_sub(largest) {
            None => done,
            Some(rest) => {
                let passes = rest / self.pass.saturating_mul(each).max(1) + 1;
                done.saturating_add(passes.saturating_mul(self.pass)).min(most)
            }
        }
    }
}

/// Requests, or bytes if these have several sizes, until all files are covered; `None` if fio goes on until it has issued as
/// many bytes as the files have.
fn cover(job: &Job, directions: &Directions, parts: &[Part], places: &Places) -> Result<Option<u64>, String> {
    let Some(file) = places.file else { return Ok(None) };
    // Behind its end, a sequence of a random job goes on at random.
    if directions.is_random && parts.iter().any(|part| part.of_file() == "sequential") {
        return Ok(None);
    }
    let all = places.all_files();
    let block = parts[0].sizes.largest();
    if !parts.iter().all(|part| part.sizes.is_one() && part.sizes.largest() == block) {
        let least = parts.iter().map(|part| part.least).min().unwrap_or(512);
        let covers = parts.iter().all(Part::covers);
        return Ok(covers.then(|| all * covered(file, least, parts)));
    }
    if file < block && all > 1 && !places.goes_on {
        return Err(job.error("nrfiles", "no request fits into a file; use fewer files or a larger size"));
    }
    let is_random = directions.is_random;
    // Sequential requests only have to begin before the end, if there is something behind it.
    let of_file = if places.goes_on && !is_random { file.div_ceil(block) } else { file / block };
    match directions.skip(job)?.filter(|skip| *skip > 0 && !is_random) {
        None => Ok(parts.iter().all(Part::covers).then(|| all * of_file)),
        Some(skip) if places.goes_on => Ok(Some(all * file.div_ceil(block + skip))),
        Some(skip) => {
            let step = block + skip;
            let last = file.saturating_sub(block) / step * step;
            // Behind the last request, fio wraps around, or finds the end of the file.
            let wraps = last + block < file && last + step >= file;
            if wraps && places.offset > 0 {
                let why = "with an offset, fio goes on at twice the offset; use a multiple of the distance as size";
                return Err(job.error("rw", why));
            }
            Ok((!wraps).then_some(all * (last / step + 1)))
        }
    }
}

/// The bytes of a file that a pass has issued when no further request fits.
fn covered(file: u64, least: u64, parts: &[Part]) -> u64 {
    match parts.iter().all(|part| part.sizes.unit().is_multiple_of(least)) {
        true => file / least * least,
        false => (file.saturating_sub(least) / 512 + 1) * 512,
    }
}
