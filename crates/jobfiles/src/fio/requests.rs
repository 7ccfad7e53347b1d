//! Which requests a job makes: operations, sizes, and positions.

use super::job::Job;
use super::laws::{Zones, law, zones};
use super::place::Places;
use super::sizes::{DirectionSizes, sizes};
use crate::conversion::{Extent, Region, Sizes, greatest_common_divisor};

/// Reads, writes, discards.
pub const READ: usize = 0;
pub const WRITE: usize = 1;
pub const DISCARD: usize = 2;

/// One kind of requests of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// [`READ`], [`WRITE`] or [`DISCARD`].
    pub direction: usize,
    pub weight: f64,
    pub sizes: Sizes,
    /// fio's least size, in bytes.
    pub least: u64,
    /// As in a program.
    pub positions: String,
    /// In bytes.
    pub align: u64,
    pub region: Region,
}

impl Part {
    /// The positions in each file.
    pub fn of_file(&self) -> &str {
        match self.positions.strip_prefix("files") {
            Some(files) => files.split_once(" of=").map_or("sequential", |(_, of)| of.trim_matches('\'')),
            None => &self.positions,
        }
    }

    /// Whether no block of it is used twice in a pass.
    pub fn has_map(&self) -> bool {
        ["shuffled", "random-map"].iter().any(|map| self.positions.contains(map))
    }

    /// Whether its requests cover the files, and then again.
    pub fn covers(&self) -> bool {
        ["sequential", "shuffled", "random-map"].contains(&self.of_file())
    }
}

/// What the job's `rw` says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Directions {
    pub is_random: bool,
    /// The shares of reads, writes and discards.
    pub weights: [f64; 3],
    /// Whether each block is discarded and then written.
    pub is_trimwrite: bool,
    /// Whether `rw` mixes reads and writes, in whatever shares.
    pub is_mixed: bool,
}

impl Directions {
    /// Whether fio counts the job among those that write.
    pub fn writes(&self) -> bool {
        self.is_mixed || self.weights[WRITE] > 0.0
    }

    /// The bytes that a sequential job leaves out after each request; below zero it goes backwards.
    pub fn skip(&self, job: &Job) -> Result<Option<u64>, String> {
        let (_, modifier) = directions(job)?;
        let Some(text) = modifier.filter(|_| !self.is_random) else { return Ok(None) };
        if text.starts_with('-') {
            return Err(job.error("rw", "backwards; a program's positions go forwards"));
        }
        let skip = job.number_of(text).map_err(|why| job.error("rw", &why))?;
        match skip % 512 {
            0 => Ok(Some(skip).filter(|skip| *skip > 0)),
            _ => Err(job.error("rw", "the distance is not a multiple of 512, the size of a sector; use one that is")),
        }
    }
}

/// What `rw` says, and the number behind its colon.
pub(super) fn directions(job: &Job) -> Result<(Directions, Option<&str>), String> {
    let text = job.text("rw").unwrap_or("read");
    let (kind, modifier) = text.split_once(':').map_or((text, None), |(kind, modifier)| (kind, Some(modifier)));
    let (is_random, weights, is_trimwrite) = match kind {
        "read" => (false, [1.0, 0.0, 0.0], false),
        "write" => (false, [0.0, 1.0, 0.0], false),
        "trim" => (false, [0.0, 0.0, 1.0], false),
        "randread" => (true, [1.0, 0.0, 0.0], false),
        "randwrite" => (true, [0.0, 1.0, 0.0], false),
        "randtrim" => (true, [0.0, 0.0, 1.0], false),
        "rw" | "readwrite" => (false, mixed(job)?, false),
        "randrw" => (true, mixed(job)?, false),
        "trimwrite" => (false, [0.0, 0.5, 0.5], true),
        "randtrimwrite" => (true, [0.0, 0.5, 0.5], true),
        _ => {
            let known = "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite or randtrimwrite";
            return Err(job.error("rw", &format!("unknown; it is {known}")));
        }
    };
    let is_mixed = matches!(kind, "rw" | "readwrite" | "randrw");
    Ok((Directions { is_random, weights, is_trimwrite, is_mixed }, modifier))
}

/// The shares of reads and writes.
fn mixed(job: &Job) -> Result<[f64; 3], String> {
    let percent = |option| {
        job.parsed(option, |text| match job.number_of(text)? {
            percent @ 0..=100 => Ok(percent as f64),
            _ => Err("a percentage from 0 to 100".into()),
        })
    };
    let (reads, writes) = (percent("rwmixread")?, percent("rwmixwrite")?);
    let reads = match (reads, writes) {
        (Some(reads), Some(writes)) if job.is_later("rwmixread", "rwmixwrite") || reads + writes == 100.0 => reads,
        (_, Some(writes)) => 100.0 - writes,
        (reads, None) => reads.unwrap_or(50.0),
    };
    Ok([reads, 100.0 - reads, 0.0])
}

/// The kinds of requests of a job, on each of the regions.
///
/// # Errors
/// If a program cannot say them.
pub fn parts(
    job: &Job,
    places: &Places,
    regions: &[Region],
    notes: &mut Vec<String>,
) -> Result<(Directions, Vec<Part>), String> {
    let (directions, modifier) = directions(job)?;
    let (sizes, aligns) = (sizes(job)?, aligns(job)?);
    // fio keeps no map of blocks if any direction has another alignment.
    let is_aligned = aligns.iter().zip(&sizes).all(|(align, of)| align.is_none_or(|align| align == of.least));
    let skip = directions.skip(job)?;
    if directions.is_random && job.text("random_generator") == Some("lfsr") {
        if !is_aligned {
            return Err(
                job.error("random_generator", "lfsr together with blockalign ends jobs early; remove one of them")
            );
        }
        let used = || sizes.iter().zip(directions.weights).filter(|(_, share)| *share > 0.0).map(|(of, _)| of);
        let block = used().next().map(|of| of.sizes.largest());
        if !used().all(|of| of.sizes.is_one() && Some(of.sizes.largest()) == block) {
            let why = "lfsr is for one size of blocks: with several, fio repeats blocks and ends jobs early; use one bs, or \
                       leave lfsr out";
            return Err(job.error("random_generator", why));
        }
        notes.push(format!("{}: fio's generator lfsr ends some jobs before their first request", job.name));
    }
    if skip.is_some() && directions.weights[READ] > 0.0 && directions.weights[WRITE] > 0.0 {
        let why = "a distance in a mix, which fio ends with the first direction; write a job for each";
        return Err(job.error("rw", why));
    }
    if directions.is_trimwrite {
        let is_mapped = job.text("percentage_random").is_none_or(|text| text.starts_with("100"));
        if modifier.is_some() || !is_mapped || regions.len() > 1 || places.files > 1 {
            let why = "discards and writes with a distance, with sequential runs or in several files; remove it";
            return Err(job.error("rw", why));
        }
        if directions.is_random && places.offset > 0 {
            let why = "with rw=randtrimwrite and an offset, fio 3.33 discards once and repeats one write; remove it";
            return Err(job.error("offset", why));
        }
    }
    if directions.is_trimwrite && !directions.is_random && sizes[WRITE].sizes != sizes[DISCARD].sizes {
        let why = "discards and writes of different sizes, which fio takes apart; use bs=SIZE for all";
        return Err(job.error("rw", why));
    }
    if directions.is_trimwrite && !directions.is_random && !sizes[WRITE].sizes.is_one() {
        return Err(job.error("rw", "fio draws the sizes of discards and of their writes apart; use one size"));
    }
    let in_turn = regions.len() > 1 || places.files > 1;
    let service = if in_turn { service(job)? } else { Service::Random(1) };
    if regions.len() > 1 && service == Service::Sequential {
        return Err(
            job.error("file_service_type", "one named file after the other; write a job for each, with stonewall")
        );
    }
    let mut parts = Vec::new();
    for direction in [READ, WRITE, DISCARD] {
        let share = directions.weights[direction];
        if share == 0.0 {
            continue;
        }
        let least_of_all = sizes.iter().map(|of| of.least).min().unwrap_or(512);
        let DirectionSizes { sizes, least } = sizes[if directions.is_trimwrite { DISCARD } else { direction }].clone();
        let align = match directions.is_random {
            true => aligns[direction].unwrap_or(least),
            false => greatest_common_divisor(sizes.unit(), skip.unwrap_or(0)),
        };
        if align % 512 != 0 {
            return Err(job.error("ba", "not a multiple of 512, the size of a sector"));
        }
        if directions.is_random && places.all_files() > 1 && places.file.is_some_and(|file| file < align.max(least)) {
            return Err(job.error("nrfiles", "no request fits into a file; use fewer files or a larger size"));
        }
        let zones = if directions.is_random { zones(job, direction)? } else { Zones::None };
        if directions.is_random && law(job, direction)?.is_some() && !places.goes_on {
            let is_odd = places.file.is_some_and(|file| file % least_of_all > 0);
            if is_odd || least != least_of_all {
                let why = "fio ends when it draws a request that is partly behind the end; use one bs, and a multiple as size";
                return Err(job.error("random_distribution", why));
            }
        }
        for region in regions {
            let region = &whole_blocks(region, directions, places, least, align);
            let mut add = |region: Region, weight: f64, positions: &str| {
                let weight = share * weight;
                parts.push(Part {
                    direction,
                    weight,
                    sizes: sizes.clone(),
                    least,
                    positions: positions.into(),
                    align,
                    region,
                });
            };
            let (zoned, option) = match &zones {
                Zones::None => {
                    add(
                        *region,
                        1.0,
                        &positions(
                            job,
                            directions,
                            direction,
                            modifier,
                            (&sizes, least, align),
                            is_aligned,
                            places.files,
                            service,
                            notes,
                        )?,
                    );
                    continue;
                }
                Zones::Shares(zones) => (zones.clone(), "random_distribution"),
                Zones::Bytes(zones) => {
                    let whole = region
                        .bytes()
                        .ok_or_else(|| job.error("random_distribution", "zoned_abs needs size in bytes; set it"))?
                        as f64;
                    if zones.iter().map(|(_, bytes)| bytes).sum::<f64>() > whole {
                        return Err(job.error("random_distribution", "a zone behind the end of the job's size"));
                    }
                    (zones.iter().map(|(access, bytes)| (*access, bytes / whole)).collect(), "random_distribution")
                }
            };
            if modifier.is_some() || job.has("percentage_random") || places.files > 1 {
                return Err(job.error(
                    option,
                    "zones together with rw=...:N, percentage_random or several files; use one of them",
                ));
            }
            let mut from = 0.0;
            for (access, share) in zoned {
                let to = (from + share).min(1.0);
                let zone = match (&zones, region.bytes()) {
                    // fio rounds the start and the length down.
                    (Zones::Shares(_), Some(bytes)) => {
                        let blocks = |share: f64| (share * (bytes / align) as f64 + 1e-9) as u64 * align;
                        region.inner(blocks(from), blocks(share))
                    }
                    _ => region.part(from, to, align).ok_or_else(|| {
                        let why = "zones of a part whose size is not known; set size, and offset in the same way";
                        job.error(option, why)
                    })?,
                };
                let is_empty = zone.from == zone.to.unwrap_or(Extent::Percent(100.0));
                if access > 0.0 && is_empty {
                    return Err(job.error(option, "a zone behind the end of the job's size, or smaller than a request"));
                }
                if access > 0.0 {
                    add(zone, access, "uniform");
                }
                from = to;
            }
        }
    }
    let maps: Vec<&Part> = parts.iter().filter(|part| part.has_map()).collect();
    let least = sizes.iter().map(|of| of.least).min();
    if maps.iter().any(|part| Some(part.least) > least) {
        notes.push(format!(
            "{}: fio 3.33 may end early, as its map has blocks of the least size of all directions",
            job.name
        ));
    }
    let is_alike = |part: &&Part| part.sizes == maps[0].sizes && part.align == maps[0].align;
    if !directions.is_trimwrite
        && maps.iter().any(|part| part.direction != maps[0].direction)
        && (!maps.iter().all(is_alike) || job.has("rate") || job.has("rate_iops"))
    {
        notes.push(format!("{}: reads and writes have a map of blocks each; fio has one for both", job.name));
    }
    Ok((directions, parts))
}

/// Random requests of a larger alignment begin in whole blocks of it.
fn whole_blocks(region: &Region, directions: Directions, places: &Places, least: u64, align: u64) -> Region {
    match region.bytes().filter(|_| directions.is_random && places.files == 1 && align > least) {
        Some(bytes) => region.inner(0, bytes / align * align),
        None => *region,
    }
}

fn aligns(job: &Job) -> Result<[Option<u64>; 3], String> {
    let aligns = job.triple("ba", |text| job.number_of(text))?;
    Ok(aligns.map(|align| align.filter(|align| *align > 0)))
}

/// How files take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// In turn, or at random, for so many requests at a time.
    InTurn(u64),
    Random(u64),
    /// One after the other.
    Sequential,
}

pub fn service(job: &Job) -> Result<Service, String> {
    let text = job.text("file_service_type").unwrap_or("roundrobin");
    let (kind, count) = text.split_once(':').map_or((text, None), |(kind, count)| (kind, Some(count)));
    let count =
        count.map_or(Ok(1), |count| job.number_of(count)).map_err(|why| job.error("file_service_type", &why))?;
    match kind {
        "roundrobin" => Ok(Service::InTurn(count.max(1))),
        "random" => Ok(Service::Random(count.max(1))),
        "sequential" => Ok(Service::Sequential),
        _ => Err(job.error("file_service_type", "files with different shares; write a job for each, with its rate")),
    }
}

/// The positions of one direction.
#[allow(clippy::too_many_arguments)]
fn positions(
    job: &Job,
    directions: Directions,
    direction: usize,
    modifier: Option<&str>,
    (sizes, least, align): (&Sizes, u64, u64),
    is_aligned: bool,
    files: u64,
    service: Service,
    notes: &mut Vec<String>,
) -> Result<String, String> {
    let note = |notes: &mut Vec<String>, text: &str| notes.push(format!("{}: {text}", job.name));
    if !directions.is_random {
        return match (directions.skip(job)?, files) {
            (Some(_), 2..) => Err(job.error("rw", "a distance between requests, in several files; use one file")),
            (Some(_), _) if !sizes.is_one() => {
                Err(job.error("rw", "a distance between requests of several sizes; use one size"))
            }
            (Some(skip), _) => {
                let stride = crate::conversion::bytes_text(skip + sizes.largest());
                Ok(format!("strided stride={stride} pass=same"))
            }
            (None, _) => Ok(in_files(files, service, "sequential")),
        };
    }
    let in_files = |positions: &str| in_files(files, service, positions);
    let random = job.triple("percentage_random", |text| match job.number_of(text)? {
        percent @ 0..=100 => Ok(percent),
        _ => Err("a percentage from 0 to 100".into()),
    })?[direction]
        .unwrap_or(100);
    let law = law(job, direction)?;
    // The generator lfsr draws each block once, even without a map.
    let is_once = job.text("random_generator") == Some("lfsr") && sizes.is_one();
    let maps = law.is_none() && is_aligned && (is_once || !job.flag("norandommap")?);
    // Requests of one size keep to blocks without a map, but for repetitions.
    let has_map = maps && (!sizes.is_one() || sizes.largest() != least) && least == align;
    if law.is_some() && (modifier.is_some() || random < 100) {
        return Err(job.error(
            "random_distribution",
            "together with sequential runs (rw=...:N, percentage_random); use one of them",
        ));
    }
    if law.is_some() && files > 1 {
        return Err(job.error("random_distribution", "in several files; use one"));
    }
    if modifier.is_some() && random < 100 {
        return Err(job.error("percentage_random", "together with rw=...:N; use one of them"));
    }
    if let Some(count) = modifier {
        let count = job.number_of(count).ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| job.error("rw", "the number behind the colon is not a number of requests"))?;
        if count > 1 {
            return Ok(in_files(&format!("{} length={count}", if has_map { "random-map" } else { "runs" })));
        }
    }
    if random == 0 {
        return Ok(in_files("sequential"));
    }
    if random < 100 {
        return Ok(in_files(&format!("{} random={random}%", if has_map { "random-map" } else { "runs" })));
    }
    if let Some(law) = law {
        return Ok(law);
    }
    if maps && sizes.is_one() && sizes.largest() == align {
        return Ok(in_files("shuffled"));
    }
    if has_map {
        return Ok(in_files("random-map"));
    }
    if maps {
        note(
            notes,
            "positions are drawn independently, as with norandommap; fio's map of blocks would avoid repetitions",
        );
    }
    Ok(in_files("uniform"))
}

/// Positions in several files side by side.
fn in_files(files: u64, service: Service, positions: &str) -> String {
    let (order, run) = match service {
        _ if files == 1 => return positions.into(),
        Service::Sequential => return positions.into(),
        Service::InTurn(run) => ("", run),
        Service::Random(run) => (" order=random", run),
    };
    let run = if run > 1 { format!(" run={run}") } else { String::new() };
    let of = match positions {
        "sequential" => String::new(),
        positions if positions.contains(' ') => format!(" of='{positions}'"),
        positions => format!(" of={positions}"),
    };
    format!("files count={files}{order}{run}{of}")
}
