//! The streams of a job.

use std::collections::BTreeSet;

use super::data::data;
use super::job::Job;
use super::job_end::{Limits, limits};
use super::pace::{Pace, pace};
use super::phases::Phases;
use super::place::Places;
use super::requests::{DISCARD, Directions, Part, READ, Service, WRITE, parts, service};
use super::values::time_text;
use crate::conversion::{Devices, Group, Origin, StreamText, Table, bytes_text, weighted};

/// What a job means in a sentence, and its streams.
///
/// # Errors
/// If a program cannot say it.
pub fn streams(
    job: &Job,
    places: &Places,
    devices: &Devices,
    phases: &mut Phases,
    notes: &mut Vec<String>,
) -> Result<(String, Vec<StreamText>), String> {
    refuse_read_back(job)?;
    let after = phases.after(job)?;
    let (mut all, mut meaning, mut names_of_streams, mut ends) = (Vec::new(), String::new(), Vec::new(), true);
    for (clone, regions) in places.regions.iter().enumerate() {
        // The notes of one clone are those of all.
        let mut own = Vec::new();
        let (directions, mut parts) = parts(job, places, regions, &mut own)?;
        let pace = pace(job, directions, &parts, &mut own)?;
        let limits = limits(job, &directions, &parts, places, &mut own)?;
        if let Some(span) = limits.span {
            parts.iter_mut().for_each(|part| part.region = part.region.inner(0, span));
        }
        let flushes = flushes(job, directions, &mut own)?;
        let names = if places.regions.len() > 1 { format!("{}.{clone}", job.name) } else { job.name.clone() };
        let data = data(job, directions, &parts, &mut own)?;
        let described = Described { job, places, devices, directions, limits, flushes };
        let (sentence, mut streams) = match &pace {
            Pace::Closed { depth, think } => described.closed(&names, parts, *depth, *think)?,
            Pace::Open { rates, is_poisson } => described.open(&names, &parts, *rates, *is_poisson),
        };
        if clone == 0 {
            dedupe(&mut own);
            notes.extend(own);
            notes.extend(unverified(job, directions));
            meaning = sentence;
        }
        ends &= limits.end.is_some() || limits.requests.is_some() || limits.bytes.is_some() || limits.passes.is_some();
        for stream in &mut streams {
            stream.origin = origin(job);
            let name = phases.unique(stream.keys.name());
            stream.keys.rename(&name);
            names_of_streams.push(name);
            if !after.is_empty() {
                stream.keys.text("after", &after.join(", "));
            }
            if let Some(data) = data.as_ref().filter(|_| !stream.only_reads()) {
                stream.keys.text("data", data);
            }
        }
        if let Some(first) = streams.first_mut() {
            first.comment = format!("{}, {}", job.place, job.text("rw").unwrap_or("read"));
        }
        all.extend(streams);
    }
    phases.add(&job.name, names_of_streams, ends);
    let then = if after.is_empty() { String::new() } else { format!("; after {}", after.join(", ")) };
    Ok((format!("{}: {meaning}{then}", job.name), all))
}

/// The option of a job that a key of its streams comes from: the first that it has.
const OPTIONS_OF_KEYS: &[(&str, &[&str])] = &[
    ("sizes", &["bssplit", "bsrange", "bs"]),
    ("redraw_sizes", &["bssplit", "bsrange"]),
    ("positions", &["random_distribution", "percentage_random", "nrfiles", "rw"]),
    ("op", &["rw"]),
    ("mix", &["rwmixread", "rwmixwrite", "rw"]),
    ("align", &["ba", "bssplit", "bsrange", "bs"]),
    ("device", &["filename"]),
    ("region", &["random_distribution", "size", "filesize", "offset"]),
    ("own_region", &["numjobs", "size"]),
    ("instances", &["numjobs"]),
    ("depth", &["iodepth"]),
    ("think", &["thinktime"]),
    ("repeat", &["thinktime_blocks"]),
    ("arrivals", &["rate", "rate_iops"]),
    ("flush_every", &["fsync", "fdatasync"]),
    ("data", &["buffer_compress_percentage", "dedupe_percentage", "buffer_pattern", "zero_buffers"]),
    ("requests", &["number_ios", "io_size", "size"]),
    ("bytes", &["io_size", "size"]),
    ("passes", &["loops"]),
    ("start", &["startdelay"]),
    ("end", &["runtime"]),
    ("after", &["wait_for", "stonewall"]),
];

fn origin(job: &Job) -> Origin {
    let of_key = |(key, options): &(&'static str, &'static [&'static str])| {
        Some((*key, job.located(options.iter().find(|option| job.has(option))?)))
    };
    Origin { job: job.located(""), options: OPTIONS_OF_KEYS.iter().filter_map(of_key).collect() }
}

fn dedupe(notes: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    notes.retain(|note| seen.insert(note.clone()));
}

/// fio reads back what a job wrote.
fn refuse_read_back(job: &Job) -> Result<(), String> {
    let is_on = |option| job.text(option).is_some_and(|text| !matches!(text, "0" | "none" | "false"));
    let writes = job.text("rw").is_some_and(|rw| rw.contains("write") || rw.contains("rw"));
    if is_on("verify") && writes && job.text("do_verify") != Some("0") {
        let why = "cannot be converted: fio reads back what the job wrote; set do_verify=0 to convert the writes alone";
        return Err(job.error("verify", why));
    }
    Ok(())
}

fn unverified(job: &Job, directions: Directions) -> Option<String> {
    let verifies = job.text("verify").is_some_and(|text| !matches!(text, "0" | "none"));
    (verifies && directions.weights[WRITE] > 0.0)
        .then(|| format!("{}: verify: nothing is verified; iosonar replay --verify does it for a load", job.name))
}

/// The writes after which a flush follows.
fn flushes(job: &Job, directions: Directions, notes: &mut Vec<String>) -> Result<Option<u64>, String> {
    let [fsync, fdatasync] =
        ["fsync", "fdatasync"].map(|option| job.number(option).map(|every| every.filter(|every| *every > 0)));
    let every = match (fsync?, fdatasync?) {
        (Some(_), Some(_)) => return Err(job.error("fdatasync", "together with fsync; use one of them")),
        (one, other) => one.or(other),
    };
    if directions.weights[WRITE] == 0.0 || directions.is_trimwrite {
        return Ok(None);
    }
    if every.is_some() && directions.weights[READ] > 0.0 {
        notes.push(format!(
            "{}: a flush follows each {} writes; fio 3.33 repeats it after each read up to the next write",
            job.name,
            every.unwrap_or(1)
        ));
    }
    if every.is_some_and(|every| every > 1_000_000) {
        return Err(job.error("fsync", "more than a million writes between two flushes; use fewer"));
    }
    Ok(every)
}

/// Whether each file has a sequence.
fn is_sequence_of_files(positions: &str) -> bool {
    positions.starts_with("files") && !["shuffled", "random-map", "uniform"].iter().any(|kind| positions.contains(kind))
}

/// A transaction of requests to each file in turn.
fn in_turn(groups: &[Group], run: u64, devices: &Devices) -> Vec<Table> {
    let tables = groups.iter().map(|group| {
        let mut step = Table::default();
        group.write(&mut step, devices);
        if run > 1 {
            step.plain("repeat", run);
        }
        step
    });
    tables.collect()
}

/// What is known of a job, or of one of its clones.
pub(super) struct Described<'a> {
    pub(super) job: &'a Job,
    pub(super) places: &'a Places,
    pub(super) devices: &'a Devices,
    pub(super) directions: Directions,
    pub(super) limits: Limits,
    pub(super) flushes: Option<u64>,
}

impl Described<'_> {
    /// Requests of the same sizes and positions together.
    fn groups(&self, parts: &[Part]) -> Result<Vec<Group>, String> {
        let mut groups = Vec::<Group>::new();
        let is_synchronous = match self.job.text("sync").unwrap_or("none") {
            "none" | "0" => self.job.flag("writefua")?,
            "sync" | "1" | "dsync" => true,
            _ => return Err(self.job.error("sync", "it is none, sync or dsync")),
        };
        for Part { direction, weight, sizes, positions, align, region, .. } in parts {
            let operation = match *direction {
                READ => "read",
                WRITE if is_synchronous => "fua",
                WRITE => "write",
                _ => "discard",
            };
            // Sequences of reads and of writes are independent of each other.
            let is_sequence = ["sequential", "strided", "runs"].iter().any(|kind| positions.starts_with(kind))
                || is_sequence_of_files(positions);
            let same = groups.iter_mut().find(|group| {
                !is_sequence
                    && (&group.sizes, &group.positions, group.align, &group.region)
                        == (sizes, positions, *align, region)
            });
            let of_part = (operation, *weight);
            match same {
                Some(group) => group.operations.push(of_part),
                None => groups.push(Group {
                    operations: vec![of_part],
                    sizes: sizes.clone(),
                    positions: positions.clone(),
                    align: *align,
                    region: *region,
                    redraws: !sizes.is_one(),
                }),
            }
        }
        Ok(groups)
    }

    /// Instances, and start and end.
    fn begin(&self, name: &str) -> Table {
        let mut keys = Table::default();
        keys.text("name", name);
        if self.places.regions.len() == 1 && self.places.clones > 1 {
            keys.plain("instances", self.places.clones);
        }
        keys
    }

    fn flush_every(&self, keys: &mut Table) {
        if let Some(every) = self.flushes {
            keys.plain("flush_every", every);
        }
    }

    fn finish(&self, keys: &mut Table, requests: Option<u64>, share: f64) {
        if self.places.is_own {
            keys.plain("own_region", true);
        }
        if self.limits.start > 0 {
            keys.text("start", &time_text(self.limits.start));
        }
        if let Some(end) = self.limits.end {
            keys.text("end", &time_text(end));
        }
        if let Some(requests) = requests {
            keys.plain("requests", requests);
        }
        if let Some(bytes) = self.limits.bytes {
            let of_stream = (bytes as f64 * share) as u64 / 512 * 512;
            keys.text("bytes", &bytes_text(of_stream.max(512)));
        }
        if let Some(passes) = self.limits.passes {
            keys.plain("passes", passes as f64 * share);
        }
    }

    fn closed(
        &self,
        name: &str,
        parts: Vec<Part>,
        depth: u64,
        think: Option<(u64, u64)>,
    ) -> Result<(String, Vec<StreamText>), String> {
        let groups = self.groups(&parts)?;
        let mut keys = self.begin(name);
        keys.plain("closed", true);
        let blocks = think.map_or(1, |(_, blocks)| blocks);
        let transactions = if blocks > 1 { 1 } else { depth };
        if transactions > 1 {
            keys.plain("depth", transactions);
        }
        if let Some((time, _)) = think {
            keys.text("think", &format!("constant value={}", time_text(time)));
        }
        let mut requests = self.limits.requests;
        let mut steps = Vec::new();
        if self.directions.is_trimwrite {
            if blocks > 1 || parts.iter().any(|part| part.region != parts[0].region) {
                return Err(self.job.error("rw", "trimwrite together with thinktime_blocks or zones"));
            }
            let group = groups.iter().find(|group| group.operations[0].0 == "discard").or(groups.first());
            let mut table = Table::default();
            if let Some(group) = group {
                Group { operations: vec![("discard", 1.0)], ..group.clone() }.write(&mut table, self.devices);
            }
            let mut write = Table::default();
            write.text("op", "write");
            write.plain("same", true);
            steps = vec![table, write];
            requests = requests.map(|requests| requests * 2);
        } else {
            match &groups[..] {
                [group] => {
                    group.write(&mut keys, self.devices);
                    if blocks > 1 {
                        steps.push(self.burst(depth, blocks)?);
                    }
                }
                _ if blocks > 1 => {
                    let why = "together with several kinds of requests or files; set thinktime_blocks=1";
                    return Err(self.job.error("thinktime_blocks", why));
                }
                several => {
                    steps = match self.in_turn(several, requests)? {
                        Some(run) => in_turn(several, run, self.devices),
                        None => weighted(several, self.devices),
                    }
                }
            }
        }
        self.flush_every(&mut keys);
        // fio's size counts the blocks, each of which is discarded and written.
        self.finish(&mut keys, requests, if self.directions.is_trimwrite { 2.0 } else { 1.0 });
        let think = think.map(|(time, blocks)| match blocks {
            1 => format!(", and pauses for {} after each", time_text(time)),
            _ => format!(", and pauses for {} after each {blocks}", time_text(time)),
        });
        let who = if self.places.clones > 1 {
            format!("{} instances, each keeps", self.places.clones)
        } else {
            "keeps".into()
        };
        let keeps = if depth == 1 { "one request outstanding".into() } else { format!("{depth} requests outstanding") };
        let sentence = format!("{who} {keeps}{}: {}", think.unwrap_or_default(), self.requests(&parts));
        Ok((sentence, vec![StreamText { keys, steps, ..StreamText::default() }]))
    }

    /// How many requests of a file come before those of the next one, if the named files take turns.
    fn in_turn(&self, groups: &[Group], requests: Option<u64>) -> Result<Option<u64>, String> {
        let files = self.places.regions[0].len();
        let Service::InTurn(run) = service(self.job)? else { return Ok(None) };
        let round = run.saturating_mul(files as u64);
        let is_whole = requests.is_none_or(|requests| requests.is_multiple_of(round));
        Ok((files > 1 && groups.len() == files && is_whole && run <= 1_000_000).then_some(run))
    }

    /// So many requests before a pause.
    fn burst(&self, depth: u64, blocks: u64) -> Result<Table, String> {
        if blocks > 1_000_000 {
            return Err(self.job.error("thinktime_blocks", "more than a million; use fewer"));
        }
        if depth > 1 && depth < blocks {
            let why = format!(
                "{blocks} requests before a pause, {depth} of them at a time; set iodepth to 1, or to {blocks}"
            );
            return Err(self.job.error("thinktime_blocks", &why));
        }
        let mut step = Table::default();
        step.plain("repeat", blocks);
        if depth > 1 {
            step.plain("wait", false);
        }
        Ok(step)
    }

    fn open(&self, name: &str, parts: &[Part], rates: [f64; 3], is_poisson: bool) -> (String, Vec<StreamText>) {
        let total: f64 = rates.iter().sum();
        let mean = |parts: &[Part]| {
            let weight: f64 = parts.iter().map(|part| part.weight).sum();
            parts.iter().map(|part| part.sizes.mean() * part.weight).sum::<f64>() / weight
        };
        let of = |direction| parts.iter().filter(|part| part.direction == direction).cloned().collect::<Vec<_>>();
        let bytes: f64 = (0..3).filter(|way| rates[*way] > 0.0).map(|way| rates[way] * mean(&of(way))).sum();
        let kind = if is_poisson { "poisson" } else { "uniform" };
        let several = rates.iter().filter(|rate| **rate > 0.0).count() > 1;
        let (mut streams, mut done) = (Vec::new(), 0.0);
        for direction in [READ, WRITE, DISCARD] {
            let own = of(direction);
            let Ok(groups) = self.groups(&own) else { continue };
            if own.is_empty() {
                continue;
            }
            let named = ["reads", "writes", "discards"][direction];
            let mut keys = self.begin(&if several { format!("{name}-{named}") } else { name.to_owned() });
            keys.text("arrivals", &format!("{kind} rate={}", rates[direction]));
            let mut steps = Vec::new();
            match &groups[..] {
                [group] => group.write(&mut keys, self.devices),
                several => steps = weighted(several, self.devices),
            }
            if direction == WRITE {
                self.flush_every(&mut keys);
            }
            // The requests of all streams are those of the job.
            let upto = |rate: f64| self.limits.requests.map(|all| (all as f64 * rate / total).round() as u64);
            let begun = upto(done);
            done += rates[direction];
            let requests = upto(done).zip(begun).map(|(upto, begun)| upto - begun);
            if requests == Some(0) {
                continue;
            }
            self.finish(&mut keys, requests, rates[direction] * mean(&own) / bytes);
            streams.push(StreamText { keys, steps, ..StreamText::default() });
        }
        let each: Vec<String> = (0..3)
            .filter(|direction| rates[*direction] > 0.0)
            .map(|direction| {
                format!(
                    "{} {} per second",
                    (rates[direction] * 100.0).round() / 100.0,
                    ["reads", "writes", "discards"][direction]
                )
            })
            .collect();
        let who = if self.places.clones > 1 {
            format!("{} instances, each submits", self.places.clones)
        } else {
            "submits".into()
        };
        let how = if is_poisson { "as a Poisson process" } else { "at even intervals" };
        // Rates say the shares of reads and writes, not the mix.
        let of_rates: Vec<Part> = parts
            .iter()
            .map(|part| {
                let all: f64 =
                    parts.iter().filter(|other| other.direction == part.direction).map(|other| other.weight).sum();
                Part { weight: part.weight / all * rates[part.direction], ..part.clone() }
            })
            .collect();
        (format!("{who} {} {how}: {}", each.join(" and "), self.requests(&of_rates)), streams)
    }
}
