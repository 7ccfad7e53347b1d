//! From a recorded load to a program with its distributions, and how well that fits: one file for each question.
//!
//! [`fit`] chooses and estimates, [`Profile`] and [`compare()`] state by statistics how a load differs from another.

mod arrivals;
mod compare;
mod hidden_markov;
mod model;
mod operations;
mod positions;
mod sample;
mod sizes;
mod text;

pub use compare::{Comparison, Profile, Row, WINDOWS, compare};
pub use model::{Candidate, Choices, FittedStream};
pub use sample::Sample;
use sample::SampledRequest;

use iosonar_trace::{Device, DeviceId, Kind, Metadata, Nanos, Op, Reader as _, Request, Sectors};

use crate::filament::open_load;
use crate::program::{Layout, Program, Settings};

/// A fitted program with its comparison.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The text of the program, in TOML.
    pub text: String,
    /// The streams that were fitted, with all candidates.
    pub streams: Vec<FittedStream>,
    /// The program's load against the original.
    pub comparison: Comparison,
    /// Each way to split the load into streams that was tried, with the mean difference of its program.
    pub tried: Vec<(String, f64)>,
    /// Sizes of the devices, for a load of the program.
    pub devices: Vec<Sectors>,
}

/// The fewest requests from which distributions can be estimated.
pub const FEWEST: usize = 100;

/// The fewest reads, and writes, for streams of their own.
const FEWEST_OF_STREAM: usize = 500;

/// Fits a program. `devices` are those of the load.
///
/// # Errors
/// If there are too few requests, all at one time, or a fitted text is not a program.
pub fn fit(sample: &Sample, devices: &[Device], choices: &Choices) -> Result<Fitted, String> {
    if sample.len() < FEWEST {
        return Err(format!("the load has {} usable requests; a fit needs at least {FEWEST}", sample.len()));
    }
    if sample.requests.first().map(|first| first.at) == sample.requests.last().map(|last| last.at) {
        return Err("all requests have the same time; a fit needs times between arrivals".into());
    }
    let original = Profile::of(sample.requests(), sample.duration(), sample.page());
    let has_both =
        |op: &dyn Fn(&SampledRequest) -> bool| sample.requests.iter().filter(|r| op(r)).count() >= FEWEST_OF_STREAM;
    let can_split = has_both(&|r| r.op == Op::Read) && has_both(&|r| r.op != Op::Read);
    let ways: &[bool] = match choices.split {
        Some(true) => &[true],
        None if can_split => &[false, true],
        _ => &[false],
    };
    let mut best: Option<Fitted> = None;
    let mut tried = Vec::new();
    for is_split in ways {
        let fitted = fit_split(sample, devices, choices, *is_split, &original)?;
        let way = if *is_split { "reads and writes apart" } else { "all operations in one" };
        tried.push((way.to_owned(), fitted.comparison.mean()));
        if best.as_ref().is_none_or(|best| fitted.comparison.mean() < best.comparison.mean()) {
            best = Some(fitted);
        }
    }
    let best = best.ok_or("there is nothing to fit")?;
    Ok(Fitted { tried, ..best })
}

fn fit_split(
    sample: &Sample,
    devices: &[Device],
    choices: &Choices,
    is_split: bool,
    original: &Profile,
) -> Result<Fitted, String> {
    let mut groups: Vec<((u16, bool), Vec<SampledRequest>)> = Vec::new();
    for asked in &sample.requests {
        let key = (asked.device, is_split && asked.op == Op::Read);
        match groups.iter_mut().find(|(group, _)| *group == key) {
            Some((_, requests)) => requests.push(*asked),
            None => groups.push((key, vec![*asked])),
        }
    }
    groups.sort_by_key(|(key, _)| *key);
    let mut used: Vec<u16> = groups.iter().map(|((device, _), _)| *device).collect();
    used.dedup();
    let sizes: Vec<u64> = used.iter().map(|number| device_size(sample, devices, *number)).collect();
    let start = sample.requests.first().map_or(Nanos::ZERO, |first| first.at);
    let mut streams = Vec::new();
    for ((number, is_read), requests) in &groups {
        let device = used.iter().position(|used| used == number).unwrap_or(0);
        let operations = if !is_split {
            "all"
        } else if *is_read {
            "reads"
        } else {
            "writes"
        };
        let name =
            if used.len() > 1 { format!("{}-{operations}", device_name(devices, *number)) } else { operations.into() };
        streams.push(fit_stream(name, requests, (start, sample.duration()), device, sizes[device], choices)?);
    }
    let names: Vec<String> = used.iter().map(|number| device_name(devices, *number)).collect();
    let text = text::program(choices, &names, &sizes, &streams);
    let sectors: Vec<Sectors> = sizes.iter().map(|size| Sectors(*size)).collect();
    let profile = |seed| profile_of(&text, &sectors, &used, (sample.duration(), sample.page()), seed);
    let (fitted, again) = (profile(choices.seed)?, profile(choices.seed.wrapping_add(1))?);
    let comparison = compare(original, &fitted, &again);
    Ok(Fitted { text, streams, comparison, tried: Vec::new(), devices: sectors })
}

/// A name for the text of a program, even if the load has none.
fn device_name(devices: &[Device], number: u16) -> String {
    let name = devices.get(usize::from(number)).map_or("", |device| device.name.as_str());
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    match plain.trim_matches('-') {
        "" => format!("device{number}"),
        plain => format!("{plain}-{number}"),
    }
}

/// The size of a device: the recorded one, if it is known and no request is beyond it. In pages of 4 KiB.
fn device_size(sample: &Sample, devices: &[Device], number: u16) -> u64 {
    let of_device = sample.requests.iter().filter(|asked| asked.device == number);
    let end = of_device.map(|asked| asked.sector + u64::from(asked.sectors)).max().unwrap_or(0);
    let known = devices.get(usize::from(number)).and_then(|device| device.sectors).unwrap_or(0);
    known.max(end).next_multiple_of(8).max(8)
}

fn fit_stream(
    name: String,
    requests: &[SampledRequest],
    (start, duration): (Nanos, Nanos),
    device: usize,
    size: u64,
    choices: &Choices,
) -> Result<FittedStream, String> {
    let times: Vec<Nanos> = requests.iter().map(|asked| asked.at - start).collect();
    let arrivals = arrivals::fit(&times, duration, choices)?;
    let (sizes, sizes_text) = sizes::fit(requests)?;
    let moved: Vec<(u64, u64)> =
        requests.iter().filter(|r| r.op != Op::Flush).map(|r| (r.sector, u64::from(r.sectors))).collect();
    let placed = positions::fit(&moved, size, &sizes, choices)?;
    let mix = operations::fit(requests);
    let positions::Placed { candidates, align, region } = placed;
    let requests = requests.len();
    Ok(FittedStream { name, requests, arrivals, positions: candidates, sizes: sizes_text, mix, align, region, device })
}

/// The profile of a program's load.
fn profile_of(
    text: &str,
    sizes: &[Sectors],
    numbers: &[u16],
    (until, page): (Nanos, u64),
    seed: u64,
) -> Result<Profile, String> {
    let program = Program::parse("fitted.toml", text)?;
    let settings = Settings { seed, ..Settings::new(Layout::Separate(sizes.to_vec())) };
    let (runtime, _) = program.place(&settings)?.open_part()?;
    let mut load = open_load(runtime, until, Metadata::new(Kind::Load, "fitted"));
    let requests = std::iter::from_fn(move || load.next().ok().flatten()).map(|request| {
        let device = numbers.get(usize::from(request.device.0)).copied().unwrap_or(0);
        Request { device: DeviceId(device), ..request }
    });
    Ok(Profile::of(requests, until, page))
}

#[cfg(test)]
mod tests;
