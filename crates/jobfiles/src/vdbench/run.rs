//! What the runs of a parameter file mean.

use std::collections::BTreeSet;

use super::data;
use super::definitions::{Definition, Definitions};
use super::names::named;
use super::open_flags;
use super::sizes::sizes;
use crate::conversion::{
    Devices, Extent, Group, Origin, Region, Sizes, StreamText, Table, bytes_text, is_raw_device, weighted,
};
use crate::fio::time_text;

/// The parts of a conversion.
#[derive(Debug, Default)]
pub struct Converted {
    pub streams: Vec<StreamText>,
    pub devices: Vec<(String, String)>,
    pub meanings: Vec<String>,
    pub notes: Vec<String>,
}

/// What a workload asks of a device.
struct Work<'a> {
    workload: &'a Definition,
    storage: &'a Definition,
    group: Group,
    /// Whether it ends at the end of its range.
    is_once: bool,
    /// Its share of the run's rate, without those of the other devices.
    skew: f64,
    /// Its own rate.
    rate: Option<f64>,
    /// The data of its writes.
    data: Option<String>,
}

impl Work<'_> {
    /// Its requests, with its share of the run as their weight.
    fn weighted(&self) -> Group {
        let scaled = |(operation, share): &(&'static str, f64)| (*operation, share * self.skew);
        Group { operations: self.group.operations.iter().map(scaled).collect(), ..self.group.clone() }
    }
}

/// # Errors
/// If a program cannot say it.
pub fn convert(all: &Definitions) -> Result<Converted, String> {
    let mut whole = Converted::default();
    let mut devices = Devices::default();
    let mut regions = Vec::new();
    for storage in &all.storages {
        regions.push(region(storage, &mut devices)?);
    }
    let mut before: Vec<String> = Vec::new();
    let mut names = BTreeSet::new();
    for (run, earlier) in all.runs.iter().zip(std::iter::once(None).chain(all.runs.iter().map(Some))) {
        let works = works(all, run, &regions)?;
        let (start, end) = times(run, earlier, &mut whole.notes)?;
        let has_rates = works.iter().all(|work| work.rate.is_some());
        let (meaning, mut streams) = match rate(run)? {
            _ if has_rates => {
                if run.has("iorate") {
                    let why = "no effect: its workloads have rates of their own";
                    whole.notes.push(format!("{}: {why}", run.located("iorate")));
                }
                open(run, &works, 0.0, &devices, &mut whole.notes)?
            }
            Some(rate) => open(run, &works, rate, &devices, &mut whole.notes)?,
            None => closed(run, &works, &devices, &mut whole.notes)?,
        };
        let mut now = Vec::new();
        for stream in &mut streams {
            let name = stream.keys.name().replace([',', '$', '"', '\\'], "_");
            let mut unique = name.trim().to_owned();
            while !names.insert(unique.clone()) {
                unique.push_str("-2");
            }
            stream.keys.rename(&unique);
            if let Some(earlier) = earlier.filter(|earlier| earlier.has("pause")) {
                stream.origin.options.push(("start", earlier.located("pause")));
            }
            if !before.is_empty() {
                stream.keys.text("after", &before.join(", "));
            }
            if start > 0 {
                stream.keys.text("start", &time_text(start));
            }
            stream.keys.text("end", &time_text(end));
            now.push(unique);
        }
        let then = if before.is_empty() { "" } else { ", after the runs before" };
        whole.meanings.push(format!("{}: {meaning}, for {}{then}", run.name, time_text(end - start)));
        whole.streams.extend(streams);
        before = now;
    }
    whole.notes.push("vdbench never uses the first block of a device; the program does".into());
    whole.devices = devices.texts();
    Ok(whole)
}

/// The part of a device that a storage definition names.
fn region(storage: &Definition, devices: &mut Devices) -> Result<Region, String> {
    let lun = storage.parsed("lun", |text| Ok(text.to_owned()))?;
    let lun = lun.ok_or_else(|| storage.error("lun", "missing: name the device"))?;
    let size = storage.bytes("size")?.filter(|size| *size > 0);
    let offset = storage.bytes("offset")?.unwrap_or(0);
    let end = size.map(|size| offset + size);
    let is_file = !is_raw_device(&lun);
    if is_file && size.is_none() {
        return Err(storage.error("size", "missing: a file needs its size"));
    }
    let device = devices.number(&lun, &storage.name, end.filter(|_| is_file));
    Ok(Region { device, from: Extent::Bytes(offset), to: end.map(Extent::Bytes) })
}

/// The parameter of the run, or else of the workload.
fn of<'a>(run: &'a Definition, workload: &'a Definition, name: &'static str) -> &'a Definition {
    if run.has(name) { run } else { workload }
}

/// The parameters that the keys of a stream come from.
fn origin(run: &Definition, work: &Work<'_>) -> Origin {
    let Work { workload, storage, .. } = work;
    let parameters = [
        ("sizes", "xfersize"),
        ("positions", "seekpct"),
        ("op", "rdpct"),
        ("mix", "rdpct"),
        ("align", "align"),
        ("region", "range"),
        ("region", "size"),
        ("depth", "threads"),
        ("arrivals", "iorate"),
        ("end", "elapsed"),
        ("device", "lun"),
    ];
    let located = |(key, name): (&'static str, &'static str)| {
        let of = [run, workload, storage].into_iter().find(|definition| definition.has(name))?;
        Some((key, of.located(name)))
    };
    Origin { job: workload.located(""), options: parameters.into_iter().filter_map(located).collect() }
}

fn works<'a>(all: &'a Definitions, run: &'a Definition, regions: &[Region]) -> Result<Vec<Work<'a>>, String> {
    let workloads: Vec<&Definition> = match named(run, "wd", &all.workloads, "workload definition")? {
        Some(numbers) => numbers.into_iter().map(|number| &all.workloads[number]).collect(),
        // A run with devices of its own needs no workload: it has the parameters.
        None if run.has("sd") => all.default_workload.iter().collect(),
        None => return Err(run.error("wd", "missing: name the workloads, as in wd=wd*, or the devices, as in sd=sd*")),
    };
    // A workload with a rate of its own has no part in the run's.
    let sharing: Vec<&Definition> = workloads.iter().filter(|workload| !workload.has("iorate")).copied().collect();
    let mut skews = Vec::new();
    for workload in &sharing {
        skews.push(workload.percent("skew")?.filter(|skew| *skew > 0.0));
    }
    let total: f64 = skews.iter().flatten().sum();
    let open = skews.iter().filter(|skew| skew.is_none()).count();
    if total > 100.0 + 1e-9 || (open == 0 && !sharing.is_empty() && total < 100.0 - 1e-9) {
        return Err(run.error("wd", &format!("the skews of its workloads add up to {total}, not 100")));
    }
    let mut works = Vec::new();
    let mut skews = skews.into_iter();
    for workload in workloads {
        let skew = if workload.has("iorate") {
            0.0
        } else {
            skews.next().flatten().unwrap_or((100.0 - total) / open.max(1) as f64) / 100.0
        };
        let storages = named(of(run, workload, "sd"), "sd", &all.storages, "storage definition")?
            .ok_or_else(|| workload.error("sd", "missing: name the devices, as in sd=sd1 or sd=(sd1-sd9)"))?;
        let rate = workload.parsed("iorate", |text| {
            text.parse::<f64>()
                .ok()
                .filter(|rate| *rate > 0.0 && rate.is_finite())
                .ok_or_else(|| format!("`{text}` is not a rate"))
        })?;
        let share = 1.0 / storages.len() as f64;
        workload.is_used.set(true);
        for &number in &storages {
            let storage = &all.storages[number];
            storage.is_used.set(true);
            let (group, is_once) = group(run, workload, storage, regions[number])?;
            let rate = rate.map(|rate| rate * share);
            let has_writes = group.operations.iter().any(|(operation, _)| matches!(*operation, "write" | "fua"));
            let data = if has_writes { data::of(all, storage)? } else { None };
            works.push(Work { workload, storage, group, is_once, skew: skew * share, rate, data });
        }
    }
    Ok(works)
}

/// The requests of a workload on a device, and whether they end at the end of the range.
fn group(
    run: &Definition,
    workload: &Definition,
    storage: &Definition,
    whole: Region,
) -> Result<(Group, bool), String> {
    for hits in ["rhpct", "whpct"] {
        if of(run, workload, hits).percent(hits)?.unwrap_or(0.0) > 0.0 {
            return Err(of(run, workload, hits)
                .error(hits, "cannot be converted: hits of a cache whose size vdbench is given; use a range"));
        }
    }
    let of_sizes = of(run, workload, "xfersize");
    let sizes = match of_sizes.values("xfersize") {
        None => Sizes::one(4096),
        Some(values) => sizes(values).map_err(|why| of_sizes.error("xfersize", &why))?,
    };
    let reads = of(run, workload, "rdpct").percent("rdpct")?.unwrap_or(100.0);
    let write = if open_flags::is_synchronous(storage, reads < 100.0)? { "fua" } else { "write" };
    let operations = [("read", reads), (write, 100.0 - reads)].into_iter().filter(|(_, share)| *share > 0.0);
    let of_seeks = of(run, workload, "seekpct");
    let (positions, is_once) = match of_seeks.parsed("seekpct", |text| Ok(text.to_ascii_lowercase()))?.as_deref() {
        None | Some("100" | "random" | "rand") => ("uniform".to_owned(), false),
        Some("0" | "sequential" | "seq" | "seqnz") => ("sequential".to_owned(), false),
        Some("eof" | "-1") => ("sequential".to_owned(), true),
        Some(_) => (format!("runs random={}%", of_seeks.percent("seekpct")?.unwrap_or(100.0)), false),
    };
    let align = storage.bytes("align")?.filter(|align| *align > 0).unwrap_or_else(|| sizes.unit());
    if align % 512 != 0 {
        return Err(storage.error("align", "not a multiple of 512, the size of a sector"));
    }
    let of_range = [run, workload].into_iter().find(|definition| definition.has("range")).unwrap_or(storage);
    let region = match of_range.range("range")? {
        None => whole,
        Some((Extent::Bytes(from), Extent::Bytes(to))) => match whole.from {
            Extent::Bytes(first) => {
                Region { from: Extent::Bytes(first + from), to: Some(Extent::Bytes(first + to)), ..whole }
            }
            Extent::Percent(_) => whole,
        },
        Some((from, to)) => {
            let share = |extent| if let Extent::Percent(percent) = extent { percent / 100.0 } else { 0.0 };
            let part = whole.part(share(from), share(to), align);
            part.ok_or_else(|| {
                of_range.error("range", "percentages of an sd with an offset and without a size; set its size")
            })?
        }
    };
    Ok((Group { operations: operations.collect(), sizes, positions, align, region, redraws: false }, is_once))
}

/// Start and end of a run in microseconds. vdbench pauses after a run, if another one comes.
fn times(run: &Definition, earlier: Option<&Definition>, notes: &mut Vec<String>) -> Result<(u64, u64), String> {
    let elapsed = run.micros("elapsed")?.unwrap_or(30_000_000);
    if elapsed == 0 {
        return Err(run.error("elapsed", "it is 0; set it to 1 or more"));
    }
    let warmup = run.micros("warmup")?.unwrap_or(0);
    if warmup > 0 {
        notes.push(format!(
            "{}: the first {} are vdbench's warmup; the run has them as well",
            run.name,
            time_text(warmup)
        ));
    }
    let pause = earlier.map(|earlier| earlier.micros("pause")).transpose()?.flatten();
    let start = pause.unwrap_or(0);
    Ok((start, start + warmup + elapsed))
}

/// Requests per second; `None`: as many as the device completes.
fn rate(run: &Definition) -> Result<Option<f64>, String> {
    let Some(values) = run.values("iorate") else { return Ok(None) };
    let sweep = "cannot be converted: a series of runs; use iosonar sweep";
    match values {
        [one] if one.eq_ignore_ascii_case("max") => Ok(None),
        [one] if one.eq_ignore_ascii_case("curve") => Err(run.error("iorate", sweep)),
        [one] => {
            let rate = one.parse::<f64>().ok().filter(|rate| *rate > 0.0 && rate.is_finite());
            rate.map(Some).ok_or_else(|| run.error("iorate", "not a rate: a number above zero, or max"))
        }
        _ => Err(run.error("iorate", sweep)),
    }
}

/// Requests at their times, whatever is outstanding.
fn open(
    run: &Definition,
    works: &[Work<'_>],
    rate: f64,
    devices: &Devices,
    notes: &mut Vec<String>,
) -> Result<(String, Vec<StreamText>), String> {
    let (kind, how) = match run.parsed("distribution", |text| Ok(text.to_ascii_lowercase()))?.as_deref() {
        None => ("poisson", "as a Poisson process"),
        Some(text) if "exponential".starts_with(text) => ("poisson", "as a Poisson process"),
        Some(text) if "deterministic".starts_with(text) => ("uniform", "at even intervals"),
        Some(_) => return Err(run.error("distribution", "cannot be converted: it is exponential or deterministic")),
    };
    let (mut streams, mut parts, mut total) = (Vec::new(), Vec::new(), 0.0);
    for work in works {
        let own = work.rate.unwrap_or(rate * work.skew);
        total += own;
        let mut keys = Table::default();
        keys.text("name", &format!("{}-{}-{}", run.name, work.workload.name, work.storage.name));
        keys.text("arrivals", &format!("{kind} rate={}", (own * 1e9).round() / 1e9));
        work.group.write(&mut keys, devices);
        if let Some(data) = &work.data {
            keys.text("data", data);
        }
        if work.is_once {
            keys.plain("passes", 1);
        }
        parts.push(format!("{} {}", rounded(own), described(work)));
        let comment = work.workload.place.to_string();
        streams.push(StreamText { comment, origin: origin(run, work), keys, steps: Vec::new() });
    }
    let of_threads = |of: &Definition| of.values("threads").map(|values| format!("threads={}", values.join(",")));
    let threads: BTreeSet<String> = match of_threads(run) {
        Some(own) => [own].into(),
        None => works.iter().filter_map(|work| of_threads(work.storage)).collect(),
    };
    let threads = if threads.is_empty() { "its threads".into() } else { Vec::from_iter(threads).join(", ") };
    notes.push(format!(
        "{}: requests come at their times, whatever is outstanding; vdbench would delay those beyond {threads}",
        run.name
    ));
    Ok((format!("submits {} requests per second {how}: {}", rounded(total), parts.join(", ")), streams))
}

fn rounded(rate: f64) -> f64 {
    (rate * 100.0).round() / 100.0
}

/// Each device always has as many requests as it has threads.
fn closed(
    run: &Definition,
    works: &[Work<'_>],
    devices: &Devices,
    notes: &mut Vec<String>,
) -> Result<(String, Vec<StreamText>), String> {
    let (mut streams, mut parts) = (Vec::new(), Vec::new());
    let mut storages: Vec<&Definition> = Vec::new();
    for work in works {
        if work.rate.is_some() {
            return Err(work
                .workload
                .error("iorate", "beside workloads without a rate; set iorate of the run, or of all workloads"));
        }
        if !storages.iter().any(|storage| storage.name == work.storage.name) {
            storages.push(work.storage);
        }
    }
    if storages.len() > 1 && works.iter().any(|work| work.workload.has("skew")) {
        notes.push(format!(
            "{}: with iorate=max each device keeps its threads busy, whatever the skews say between devices; set iorate to \
             keep them",
            run.name
        ));
    }
    for storage in storages {
        let own: Vec<&Work<'_>> = works.iter().filter(|work| work.storage.name == storage.name).collect();
        let of_threads = if run.has("threads") { run } else { storage };
        let threads = of_threads.bytes("threads")?.unwrap_or(8);
        if !(1..=1 << 20).contains(&threads) {
            return Err(of_threads.error("threads", "not a number from 1 to 1048576"));
        }
        let mut keys = Table::default();
        keys.text("name", &format!("{}-{}", run.name, storage.name));
        keys.plain("closed", true);
        if threads > 1 {
            keys.plain("depth", threads);
        }
        let mut steps = Vec::new();
        if let [one] = &own[..] {
            one.group.write(&mut keys, devices);
        } else {
            let groups: Vec<Group> = own.iter().map(|work| work.weighted()).collect();
            steps = weighted(&groups, devices);
            notes.push(format!(
                "{}: the workloads of {} take its threads in proportion to their skew",
                run.name, storage.name
            ));
        }
        if own.iter().any(|work| work.is_once) {
            keys.plain("passes", 1);
        }
        if let Some(data) = own.iter().find_map(|work| work.data.as_ref()) {
            keys.text("data", data);
        }
        let what: Vec<String> = own.iter().map(|work| described(work)).collect();
        let requests = if threads == 1 { "request" } else { "requests" };
        parts.push(format!("{threads} {requests} on {}: {}", storage.name, what.join(" and ")));
        let comment = own[0].workload.place.to_string();
        streams.push(StreamText { comment, origin: origin(run, own[0]), keys, steps });
    }
    Ok((format!("keeps outstanding {}", parts.join("; ")), streams))
}

/// What a workload asks for, in words.
fn described(work: &Work<'_>) -> String {
    let Group { operations, sizes, positions, region, .. } = &work.group;
    let total: f64 = operations.iter().map(|(_, weight)| weight).sum();
    let share = |weight: f64| {
        if operations.len() > 1 { format!("{} % ", (weight / total * 100.0).round()) } else { String::new() }
    };
    let operations: Vec<String> = operations
        .iter()
        .map(|(operation, weight)| {
            let name = match *operation {
                "read" => "reads",
                "fua" => "writes with forced unit access",
                _ => "writes",
            };
            format!("{}{name}", share(*weight))
        })
        .collect();
    let order = match positions.as_str() {
        "uniform" => "random".to_owned(),
        "sequential" => "sequential".to_owned(),
        other => format!("`{other}`"),
    };
    let bytes = region.bytes().map_or_else(String::new, |bytes| format!(" of {}", bytes_text(bytes)));
    format!(
        "{order} {} of {} ({}) on {}{bytes}",
        operations.join(" and "),
        sizes.phrase(),
        work.workload.name,
        work.storage.name
    )
}
