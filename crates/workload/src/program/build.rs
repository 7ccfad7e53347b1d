//! From the text of a program to filaments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use iosonar_trace::params::{
    Section, Settings as Kind, Text, did_you_mean, parse_count, parse_duration, parse_positive, parse_rate,
    parse_sectors,
};
use iosonar_trace::{Device, DeviceId, Flags, MAX_END_SECTOR, Nanos, Op, Sectors};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::instance::{Follower, Instance, Order, Place, Plan, Step, Which};
use super::keys::{DEVICE, PROGRAM, STEP, STREAM};
use super::memory;
use super::model::{Demand, Layout, Program, Settings, StreamInfo};
use super::parts::{Placed, above_zero, generator};
use super::recorded::{self, Area, Loads, OF_LOADS, Recorded, is_load};
use super::region::{Extent, Region};
use super::scripted::{self, Files, Scripted, is_script};
use crate::filament::{FilamentId, Runtime};
use crate::generated::{MAX_REQUESTS, expected, refuse_many};
use crate::origin::Origins;
use crate::positions::Space;
use crate::script::Receiver;
use crate::{Mix, Sizes, arrivals, distributions, positions};

/// The most instances of all streams, and transactions at a time of all of them.
const MAX_INSTANCES: u64 = 1 << 30;
const MAX_STREAMS: usize = 1 << 15;
const MAX_REPEATS: u64 = 1_000_000;

/// Transactions at a time of an instance of an open stream.
const OPEN_DEPTH: u64 = 1000;

/// The size of the target on which a text is checked when it is parsed.
const CHECKED_ON: Sectors = Sectors(1 << 41);

/// The program in this text, checked with the defaults of its parameters on a large target.
pub(super) fn described(file: &str, source: &str) -> Result<Program, String> {
    let mut text = Text { file, source, set: Some(BTreeMap::new()) };
    let table = text.parse()?;
    let (mut name, mut about) = (String::new(), String::new());
    let parameters = parameters(&text, &table)?;
    text.set = Some(parameters.iter().cloned().collect());
    let section = program(&text, &table)?;
    for (key, value) in [("name", &mut name), ("about", &mut about)] {
        *value = section.text(key)?.ok_or_else(|| section.error(key, "missing; add it"))?;
    }
    let devices = device_texts(&section)?;
    let layout = Layout::Together(CHECKED_ON);
    let sizes = sizes(&devices, &Settings::new(layout)).map_err(|why| section.error("devices", &why))?;
    let (scripts, loads) = (Files::default(), Loads::default());
    let streams = streams(&section, &sizes, 1, (&scripts, &loads))?;
    let mut infos = Vec::<StreamInfo>::new();
    for stream in &streams {
        // When a stream begins is known without a device if the same holds of those before it.
        let is_open = stream.is_open() && stream.after.iter().all(|&n| infos[n].is_open);
        infos.push(StreamInfo {
            name: stream.name.clone(),
            instances: stream.instances,
            is_open,
            has_timers: stream.has_timers(),
            is_per_scale: stream.is_per_scale,
            runs_ahead: is_open && stream.can_run_ahead(),
            ends: stream.ends(),
        });
    }
    let streams = infos;
    Ok(Program {
        file: file.to_owned(),
        source: source.to_owned(),
        name,
        about,
        parameters,
        streams,
        scripts: scripts.into_inner(),
        loads,
        left_out: Vec::new(),
        origins: Origins::default(),
    })
}

/// Calls `with` with the text of the program, in which these parameters are set.
fn reread<T>(
    of: &Program,
    set: &[(String, String)],
    with: impl FnOnce(&Section<'_, '_>) -> Result<T, String>,
) -> Result<T, String> {
    let mut values: BTreeMap<_, _> = of.parameters.iter().cloned().collect();
    for (name, value) in set {
        let known = of.parameters.iter().map(|(name, _)| name.as_str());
        let Some(parameter) = values.get_mut(name) else {
            let why = if of.parameters.is_empty() { "it has none".into() } else { did_you_mean(name, known) };
            return Err(format!("{} has no parameter `{name}`; {why}", of.name));
        };
        parameter.clone_from(value);
    }
    let text = Text { file: &of.file, source: &of.source, set: Some(values) };
    let table = text.parse()?;
    with(&program(&text, &table)?).map_err(|why| of.origins.located(why))
}

pub(super) fn device_names(of: &Program) -> Vec<String> {
    let names = reread(of, &[], |section| Ok(device_texts(section)?.into_iter().map(|device| device.name).collect()));
    names.unwrap_or_default()
}

pub(super) fn devices(of: &Program, settings: &Settings) -> Result<Vec<Device>, String> {
    reread(of, &settings.set, |section| {
        let placed = placed(section, settings)?;
        Ok(match settings.layout {
            Layout::Together(size) => vec![Device { name: of.name.clone(), sectors: Some(size.0) }],
            Layout::Separate(_) => {
                placed.into_iter().map(|d| Device { name: d.name, sectors: Some(d.size.0) }).collect()
            }
        })
    })
}

pub(super) fn sizes_on(of: &Program, settings: &Settings) -> Result<Vec<Sectors>, String> {
    reread(of, &settings.set, |section| Ok(placed(section, settings)?.into_iter().map(|device| device.size).collect()))
}

pub(super) fn runtime(
    of: &Program,
    settings: &Settings,
    is_wanted: impl Fn(&StreamInfo) -> bool,
) -> Result<Runtime, String> {
    reread(of, &settings.set, |section| {
        let devices = placed(section, settings)?;
        let mut runtime = Runtime::default();
        let streams = streams(section, &devices, settings.scale, (&Files::new(of.scripts.clone()), &of.loads))?;
        memory::check(streams.iter().fold(0, |sum, stream| stream.bytes().saturating_add(sum)))
            .map_err(|why| section.error("stream", &why))?;
        for (number, stream) in streams.iter().enumerate() {
            if of.streams.get(number).is_some_and(&is_wanted) && matches!(stream.kind, Source::Keys) {
                if !stream.ends() {
                    runtime.set_endless();
                }
                let events = u64::from(stream.plan.most_pending(stream.arrivals.is_some()));
                runtime.make_room(stream.instances, stream.instances.saturating_mul(events));
            }
        }
        let receivers = receivers(&streams, |number| of.streams.get(number).is_some_and(&is_wanted));
        let mut followers: Vec<Vec<Follower>> = streams.iter().map(|_| Vec::new()).collect();
        for (number, stream) in streams.iter().enumerate() {
            if of.streams.get(number).is_some_and(&is_wanted) {
                let first = FilamentId(runtime.filaments() as u32);
                stream
                    .after
                    .iter()
                    .for_each(|&n| followers[n].push(Follower { plan: Arc::clone(&stream.plan), first }));
                match &stream.kind {
                    Source::Script(script) => {
                        script.add_to(&mut runtime, number as u16, &stream.plan, settings.seed, &receivers)?;
                    }
                    Source::Load(load) => load.add_to(&mut runtime, number as u16)?,
                    Source::Keys => stream
                        .add_to(&mut runtime, number as u16, settings.seed)
                        .map_err(|why| format!("{}: stream {}: {why}", of.file, stream.name))?,
                }
            }
        }
        for (stream, followers) in streams.iter().zip(followers) {
            // Nothing has set them before.
            _ = stream.plan.order.followers.set(followers);
        }
        Ok(runtime)
    })
}

pub(super) fn demand(of: &Program, settings: &Settings) -> Result<Demand, String> {
    reread(of, &settings.set, |section| {
        let devices = placed(section, settings)?;
        let mut demand = Demand::default();
        for stream in streams(section, &devices, settings.scale, (&Files::new(of.scripts.clone()), &of.loads))? {
            demand.memory = demand.memory.saturating_add(stream.bytes());
            let plan = &stream.plan;
            let of_kind = match &stream.kind {
                Source::Keys => None,
                // How many of its events are requests is not known.
                Source::Script(script) => Some((script.kinds.reads, script.kinds.writes, script.largest())),
                Source::Load(load) => Some((load.about.reads, load.about.writes, load.about.longest)),
            };
            if let Some((reads, writes, largest)) = of_kind {
                (demand.reads, demand.writes) = (demand.reads || reads, demand.writes || writes);
                demand.largest = demand.largest.max(largest);
                demand.changes = true;
                continue;
            }
            if stream.arrivals.is_none() {
                let at_once = stream.instances.saturating_mul(u64::from(plan.depth));
                let at_once = at_once.saturating_mul(u64::from(plan.most_outstanding()));
                demand.closed_at_once = demand.closed_at_once.saturating_add(at_once);
            }
            let mut largest = Sectors(0);
            for step in &plan.steps {
                // A request at the place of the one before it has its length.
                largest = if matches!(step.place, Place::Same) { largest } else { step.sizes.largest() };
                let (reads, writes) = (step.mix.has(Op::Read), step.mix.has(Op::Write));
                (demand.reads, demand.writes) = (demand.reads || reads, demand.writes || writes);
                demand.changes |= writes || step.mix.has(Op::Discard);
                if reads || writes {
                    demand.largest = demand.largest.max(largest);
                }
            }
        }
        Ok(demand)
    })
}

pub(super) fn check_length(of: &Program, settings: &Settings, until: Nanos) -> Result<(), String> {
    reread(of, &settings.set, |section| {
        let devices = placed(section, settings)?;
        let streams = streams(section, &devices, settings.scale, (&Files::new(of.scripts.clone()), &of.loads))?;
        let expected = streams.iter().map(|stream| stream.expected_requests(until)).sum::<Result<f64, String>>()?;
        refuse_many("run", expected).map_err(|why| format!("{}: {why}", of.name))
    })
}

fn placed(section: &Section<'_, '_>, settings: &Settings) -> Result<Vec<Placed>, String> {
    if settings.scale == 0 {
        return Err("the scale is 0: set it to 1 or more".into());
    }
    sizes(&device_texts(section)?, settings).map_err(|why| section.error("devices", &why))
}

fn program<'t, 'a>(text: &'t Text<'a>, table: &'t Spanned<DeTable<'a>>) -> Result<Section<'t, 'a>, String> {
    Section::new(text, 0, String::new(), table.get_ref(), PROGRAM)
}

fn parameters(text: &Text<'_>, table: &Spanned<DeTable<'_>>) -> Result<Vec<(String, String)>, String> {
    let section = program(text, table)?;
    let names = section.names("set")?.into_iter();
    let values = names.map(|(name, value)| {
        let located = |why: String| text.error(value.span().start, &format!("set, {name}"), &why);
        if value.get_ref().as_str().is_some_and(|text| text.contains('$')) {
            return Err(located("the value of a parameter cannot name another one; write it without $".into()));
        }
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(located("a parameter's name has letters, digits and _ only".into()));
        }
        Ok((name.to_owned(), text.scalar(value).map_err(located)?))
    });
    values.collect()
}

/// A device as in the text.
struct DeviceText {
    name: String,
    size: Extent,
    is_per_scale: bool,
}

fn device_texts(section: &Section<'_, '_>) -> Result<Vec<DeviceText>, String> {
    let names = section.names("devices")?;
    if names.is_empty() {
        return Ok(vec![DeviceText { name: "target".into(), size: Extent::Share(1.0), is_per_scale: false }]);
    }
    names.into_iter().map(|(name, value)| device_text(section.text, name, value)).collect()
}

fn device_text(text: &Text<'_>, name: &str, value: &Spanned<DeValue<'_>>) -> Result<DeviceText, String> {
    let at = value.span().start;
    let what = format!("devices, {name}");
    let name = name.to_owned();
    let Some(table) = value.get_ref().as_table() else {
        let size = text.scalar(value).and_then(|size| Extent::parse_size(&size));
        return Ok(DeviceText { name, size: size.map_err(|why| text.error(at, &what, &why))?, is_per_scale: false });
    };
    let section = Section::new(text, at, what, table, DEVICE)?;
    let size = section.parsed("size", Extent::parse_size)?.ok_or_else(|| section.error("size", "missing; add it"))?;
    Ok(DeviceText { name, size, is_per_scale: section.flag("per_scale")?.unwrap_or(false) })
}

fn sizes(devices: &[DeviceText], settings: &Settings) -> Result<Vec<Placed>, String> {
    if let Layout::Separate(sizes) = &settings.layout
        && sizes.len() != devices.len()
    {
        return Err(format!("the program has {} devices, but sizes of {} were given", devices.len(), sizes.len()));
    }
    let mut first = 0_u64;
    let mut all = Vec::new();
    for (number, DeviceText { name, size, is_per_scale }) in devices.iter().enumerate() {
        let factor = if *is_per_scale { settings.scale } else { 1 };
        let (whole, id) = match &settings.layout {
            Layout::Together(size) => (*size, 0),
            Layout::Separate(sizes) => (sizes[number], number as u16),
        };
        // A target of its own is all of the device's, if that has a share of the target.
        let own = match (size, &settings.layout) {
            (Extent::Share(_), Layout::Separate(_)) => whole.0,
            _ => size.of(whole).saturating_mul(factor),
        };
        let is_together = matches!(settings.layout, Layout::Together(_));
        let end = if is_together { first.saturating_add(own) } else { own };
        if end > whole.0 || whole.0 > MAX_END_SECTOR {
            return Err(format!(
                "device {name} ends at sector {end}, but the target has {}; use a larger target{}",
                whole.0.min(MAX_END_SECTOR),
                if *is_per_scale { " or a smaller --scale" } else { " or smaller sizes" },
            ));
        }
        if own == 0 {
            return Err(format!(
                "device {name} has no sectors on a target of {} sectors; use a larger target",
                whole.0
            ));
        }
        all.push(Placed { name: name.clone(), id: DeviceId(id), first, size: Sectors(own) });
        first = if is_together { end.next_multiple_of(8) } else { 0 };
    }
    Ok(all)
}

/// A stream that can become filaments.
struct Stream {
    name: String,
    instances: u64,
    is_per_scale: bool,
    arrivals: Option<Kind>,
    plan: Arc<Plan>,
    /// The positions that each filament has.
    own: Vec<(Kind, Space)>,
    /// The numbers of the streams that end before it begins.
    after: Vec<usize>,
    kind: Source,
}

/// What says when and where the requests of a stream go.
enum Source {
    /// The other keys of the stream.
    Keys,
    Script(Scripted),
    Load(Recorded),
}

impl Stream {
    /// About what its instances need in memory.
    fn bytes(&self) -> u64 {
        let maps = self.own.iter().fold(0, |sum, (kind, space)| positions::bytes(kind, *space).saturating_add(sum));
        let own = self.plan.bytes_of_instance(self.own.len(), self.arrivals.is_some());
        self.instances.saturating_mul(own.saturating_add(maps))
    }

    /// About how many requests it asks for in this time, if it is open.
    fn expected_requests(&self, until: Nanos) -> Result<f64, String> {
        let Some(kind) = &self.arrivals else { return Ok(0.0) };
        let (plan, instances) = (&self.plan, self.instances as f64);
        let (each, mean) = plan.of_transaction();
        let most = (plan.transactions as f64).min(plan.most_sectors as f64 / (each * mean).max(1.0));
        let until = until.min(plan.end) - plan.start;
        let transactions = match most * each * instances > MAX_REQUESTS {
            true => most.min(expected(&mut *arrivals::build(kind)?, until)),
            false => most,
        };
        Ok(transactions * each * instances)
    }

    /// Whether its requests have times that do not depend on the device.
    fn is_open(&self) -> bool {
        (self.arrivals.is_some() || !matches!(self.kind, Source::Keys)) && !self.plan.is_waiting
    }

    /// Whether a thread can run it ahead of the loop, if it is open.
    fn can_run_ahead(&self) -> bool {
        match &self.kind {
            Source::Keys => false,
            Source::Script(script) => !script.kinds.sends,
            Source::Load(_) => true,
        }
    }

    /// Whether it ends by itself.
    fn ends(&self) -> bool {
        self.plan.has_end() || matches!(self.kind, Source::Load(_))
    }

    /// Whether it asks for requests at times, after it has started. A script may.
    fn has_timers(&self) -> bool {
        let plan = &self.plan;
        self.arrivals.is_some() || !matches!(self.kind, Source::Keys) || plan.think.is_some() || plan.interval.is_some()
    }

    fn add_to(&self, runtime: &mut Runtime, stream: u16, seed: u64) -> Result<(), String> {
        for number in 0..self.instances as u32 {
            let arrivals = self.arrivals.as_ref().map(arrivals::build).transpose()?;
            // All instances have the same frequent positions, so they have the seed of the run.
            let own = self.own.iter().map(|(kind, space)| positions::build(kind, *space, seed));
            let own = own.collect::<Result<Box<[_]>, _>>()?;
            let rngs = [1, 2, 3].map(|part| generator(seed, stream, number, part));
            let instance = Instance::new(Arc::clone(&self.plan), number, rngs, own, arrivals);
            if self.after.is_empty() {
                runtime.add(Box::new(instance), stream, self.plan.start_of(number));
            } else {
                runtime.add_asleep(Box::new(instance), stream);
            }
        }
        Ok(())
    }
}

/// Where messages to scripts go, by the names of their streams.
fn receivers(streams: &[Stream], is_wanted: impl Fn(usize) -> bool) -> BTreeMap<String, Receiver> {
    let (mut all, mut next) = (BTreeMap::new(), 0_u64);
    for (number, stream) in streams.iter().enumerate() {
        let first = is_wanted(number).then_some(FilamentId(next as u32));
        next += if first.is_some() { stream.instances } else { 0 };
        if matches!(stream.kind, Source::Script(_)) {
            all.insert(stream.name.clone(), Receiver { first, instances: stream.instances as u32 });
        }
    }
    all
}

fn streams(
    section: &Section<'_, '_>,
    devices: &[Placed],
    scale: u64,
    (files, loads): (&Files, &Loads),
) -> Result<Vec<Stream>, String> {
    let tables = section.tables("stream")?;
    if tables.is_empty() {
        return Err(section.error("stream", "the program has no stream; add [[stream]]"));
    }
    if tables.len() > MAX_STREAMS {
        return Err(section.error("stream", &format!("more than {MAX_STREAMS} streams")));
    }
    let mut scripts = Vec::new();
    for (at, table) in tables.iter().filter(|(_, table)| is_script(table) && !is_load(table)) {
        scripts.extend(Section::new(section.text, *at, String::new(), table, STREAM)?.text("name")?);
    }
    let (mut all, mut total) = (Vec::<Stream>::new(), 0_u64);
    for (number, (at, table)) in tables.into_iter().enumerate() {
        let path = format!("stream {}", number + 1);
        let mut own = Section::new(section.text, at, path, table, STREAM)?;
        let name = own.text("name")?.ok_or_else(|| own.error("name", "missing; add it"))?;
        if all.iter().any(|stream| stream.name == name) {
            return Err(own.error("name", &format!("another stream has the name {name}; choose a different one")));
        }
        own.path = format!("stream {name}");
        let stream = if is_load(table) {
            load_stream(&own, name, devices, loads)?
        } else if let Some(key) = OF_LOADS.into_iter().find(|key| own.has(key)) {
            return Err(own.error(key, "only a stream that is a load has it; remove the key, or set `load`"));
        } else if is_script(table) {
            script_stream(&own, name, devices, scale, &scripts, files)?
        } else {
            let after = after(&own, &all)?;
            stream(&own, name, devices, scale, after)?
        };
        total = total.saturating_add(stream.instances.saturating_mul(u64::from(stream.plan.depth)));
        if total > MAX_INSTANCES {
            return Err(own.error("instances", &format!("more than {MAX_INSTANCES} transactions at a time in all; use fewer instances, a smaller depth or a smaller scale")));
        }
        all.push(stream);
    }
    Ok(all)
}

/// A stream that is a load.
fn load_stream(section: &Section<'_, '_>, name: String, devices: &[Placed], loads: &Loads) -> Result<Stream, String> {
    recorded::check_keys(section)?;
    let place =
        StepSection { step: None, stream: section }.region(devices, 1, &"1s".parse()?, false, &mut Vec::new())?;
    let Place::Region { device, first, size, .. } = place else {
        return Err(section.error("region", "a load needs a region of its own"));
    };
    let load = recorded::read(section, Area { device, first, size }, loads)?;
    let plan = Arc::new(Plan::of_times(1, load.start, 0.0, load.end));
    let (arrivals, own, after) = (None, Vec::new(), Vec::new());
    Ok(Stream { name, instances: 1, is_per_scale: false, arrivals, plan, own, after, kind: Source::Load(load) })
}

/// A stream that is a script.
fn script_stream(
    section: &Section<'_, '_>,
    name: String,
    devices: &[Placed],
    scale: u64,
    others: &[String],
    files: &Files,
) -> Result<Stream, String> {
    let (instances, is_per_scale) = scripted::instances(section, scale)?;
    let place = StepSection { step: None, stream: section }.region(
        devices,
        instances,
        &"4k".parse()?,
        false,
        &mut Vec::new(),
    )?;
    let (plan, script) = scripted::read(section, &name, devices, (instances as u32, place), others, files)?;
    let (plan, kind) = (Arc::new(plan), Source::Script(script));
    Ok(Stream { name, instances, is_per_scale, arrivals: None, plan, own: Vec::new(), after: Vec::new(), kind })
}

/// The numbers of the streams that end before this one begins.
fn after(section: &Section<'_, '_>, above: &[Stream]) -> Result<Vec<usize>, String> {
    let names = section.text("after")?.unwrap_or_default();
    let mut numbers = Vec::new();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let Some(number) = above.iter().position(|stream| stream.name == name) else {
            let known = above.iter().map(|stream| stream.name.as_str());
            let near = if above.is_empty() { "there is none".into() } else { did_you_mean(name, known) };
            return Err(section.error("after", &format!("no stream above this one has the name {name}; {near}")));
        };
        let why = match above[number].kind {
            Source::Script(_) => "is a script, whose end is not known; use `start`",
            Source::Load(_) => "is a load, which does not wait for its requests; use `start`",
            Source::Keys => "",
        };
        if !why.is_empty() {
            return Err(section.error("after", &format!("stream {name} {why}")));
        }
        let plan = &above[number].plan;
        if !plan.has_end() {
            let why = format!("stream {name} never ends; set its requests, bytes, passes or end");
            return Err(section.error("after", &why));
        }
        plan.order.is_followed.store(true, Ordering::Relaxed);
        numbers.push(number);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// The transactions of an instance that cover its regions so often.
fn transactions_of_passes(passes: f64, steps: &[Step], weights: &[f64]) -> u64 {
    let (mut bytes, mut before) = (0.0, 0.0);
    for (number, step) in steps.iter().enumerate() {
        let share = weights.get(number).map_or(f64::from(step.repeat), |upto| {
            (upto - std::mem::replace(&mut before, *upto)) / weights.last().unwrap_or(&1.0)
        });
        if matches!(step.place, Place::Region { .. }) {
            bytes += step.sizes.mean() * share * (1.0 - step.mix.share(Op::Flush, Flags::NONE));
        }
    }
    (passes * covered(steps) / bytes).clamp(1.0, 1e18) as u64
}

/// The sectors of all regions that an instance uses.
fn covered(steps: &[Step]) -> f64 {
    let mut regions = BTreeMap::new();
    for step in steps {
        if let Place::Region { device, first, size, .. } = step.place
            && step.mix.share(Op::Flush, Flags::NONE) < 1.0
        {
            regions.insert((device, first), size);
        }
    }
    regions.values().map(|size| *size as f64).sum()
}

fn stream(
    section: &Section<'_, '_>,
    name: String,
    devices: &[Placed],
    scale: u64,
    after: Vec<usize>,
) -> Result<Stream, String> {
    let count = |key| section.parsed(key, above_zero(parse_count));
    let per_scale = section.flag("per_scale")?.unwrap_or(true);
    let instances = count("instances")?.unwrap_or(1).saturating_mul(if per_scale { scale } else { 1 });
    let arrivals = section.parsed("arrivals", |text| {
        let kind = arrivals::parse(text)?;
        arrivals::build(&kind)?;
        Ok(kind)
    })?;
    let is_closed = section.flag("closed")?.unwrap_or(false);
    if arrivals.is_some() == is_closed {
        let (key, why) = match is_closed {
            true => ("closed", "a stream is open (arrivals) or closed, not both; remove one of the keys"),
            false => (
                "arrivals",
                "missing: say when requests come (arrivals = \"poisson rate=500\"), or closed = true, or name a script or a load",
            ),
        };
        return Err(section.error(key, why));
    }
    for key in ["think", "rate_limit"] {
        if section.has(key) && !is_closed {
            return Err(section
                .error(key, "only a closed stream has it; the arrivals of an open stream say when requests come"));
        }
    }
    let think = section.parsed("think", |text| distributions::build(&distributions::parse(text)?))?;
    let interval = section.parsed("rate_limit", parse_rate)?.map(|rate| 1e9 / rate);
    let start = section.parsed("start", parse_duration)?.unwrap_or(Nanos::ZERO);
    let ramp_up = section.parsed("ramp_up", parse_duration)?.unwrap_or(Nanos::ZERO);
    let stagger = ramp_up.0 as f64 / instances as f64;
    let end = section.parsed("end", parse_duration)?.unwrap_or(Nanos::MAX);
    if end <= start {
        return Err(section.error("end", "the stream ends before it starts; set a later end"));
    }
    let requests = count("requests")?;
    let tables = section.tables("step")?;
    let mut own = Vec::new();
    let mut steps = Vec::new();
    for (number, (at, table)) in tables.iter().enumerate() {
        let path = format!("{}, step {}", section.path, number + 1);
        let step_section = Section::new(section.text, *at, path, table, STEP)?;
        let read = StepSection { step: Some(&step_section), stream: section };
        steps.push(read.step(devices, instances, &mut own, number == 0)?);
    }
    if tables.is_empty() {
        steps.push(StepSection { step: None, stream: section }.step(devices, instances, &mut own, true)?);
    }
    let weights = weights(section, &tables)?;
    let of_transaction: u64 =
        if weights.is_empty() { steps.iter().map(|step| u64::from(step.repeat)).sum() } else { 1 };
    let is_waiting = is_closed || of_transaction > 1 && steps.iter().any(|step| step.is_waiting);
    let depth = count("depth")?;
    if depth.is_some() && !is_waiting {
        return Err(section.error("depth", "no request of this stream waits for another; remove the key"));
    }
    let depth = depth.unwrap_or(if is_closed || !is_waiting { 1 } else { OPEN_DEPTH });
    let depth = u32::try_from(depth).ok().filter(|depth| u64::from(*depth) <= MAX_INSTANCES);
    let depth = depth.ok_or_else(|| section.error("depth", "too large; use a smaller one"))?;
    let mut transactions = requests.map_or(u64::MAX, |requests| requests.div_ceil(of_transaction));
    let rest = requests.filter(|_| steps.len() == 1 && depth == 1).map(|requests| requests % of_transaction);
    let mut most_sectors = section.parsed("bytes", above_zero(|text| Ok(parse_sectors(text)?.0)))?.unwrap_or(u64::MAX);
    if let Some(passes) = section.parsed("passes", parse_positive)? {
        // How many requests use up a map depends on how often they become shorter.
        if steps.iter().any(|step| step.redraws) || own.iter().any(|(kind, _)| kind.name() == "random-map") {
            most_sectors = most_sectors.min((passes * covered(&steps)).clamp(1.0, 1e18) as u64);
        } else {
            transactions = transactions.min(transactions_of_passes(passes, &steps, &weights));
        }
    }
    let is_last = |_: &u64| requests.is_some_and(|requests| requests.div_ceil(of_transaction) == transactions);
    let last_repeat = rest.filter(|rest| *rest > 0).filter(is_last).map(|rest| rest as u32);
    let flush_every = count("flush_every")?.unwrap_or(0);
    let order = Order {
        instances: instances.min(MAX_INSTANCES) as u32,
        unfinished: AtomicU32::new(instances.min(MAX_INSTANCES) as u32),
        is_after: !after.is_empty(),
        waits_for: AtomicU32::new(after.len() as u32),
        ..Order::default()
    };
    let plan = Plan {
        steps,
        weights,
        depth,
        think,
        interval,
        start,
        stagger,
        end,
        transactions,
        last_repeat,
        most_sectors,
        flush_every,
        is_waiting,
        order,
    };
    let (plan, kind) = (Arc::new(plan), Source::Keys);
    Ok(Stream { name, instances, is_per_scale: per_scale, arrivals, plan, own, after, kind })
}

/// The cumulative weight of each step; empty if the steps have none.
fn weights(section: &Section<'_, '_>, tables: &[(usize, &DeTable<'_>)]) -> Result<Vec<f64>, String> {
    let (mut weights, mut total) = (Vec::new(), 0.0);
    if !tables.iter().any(|(_, table)| table.contains_key("weight")) {
        return Ok(weights);
    }
    for (number, (at, table)) in tables.iter().enumerate() {
        let path = format!("{}, step {}", section.path, number + 1);
        let step = Section::new(section.text, *at, path, table, STEP)?;
        let why = "missing: another step has a weight, so each step of the stream needs one";
        total += step.parsed("weight", parse_positive)?.ok_or_else(|| step.error("weight", why))?;
        weights.push(total);
        let of_several = ["same", "repeat", "wait"].into_iter().find(|key| step.has(key));
        if let Some(key) = of_several {
            return Err(step.error(key, "a step with a weight is a whole transaction of one request; remove the key"));
        }
    }
    Ok(weights)
}

/// A step, which has the values of its stream where it has none of its own.
struct StepSection<'s, 't, 'a> {
    step: Option<&'s Section<'t, 'a>>,
    stream: &'s Section<'t, 'a>,
}

impl<'s, 't, 'a> StepSection<'s, 't, 'a> {
    /// The section that has the key, or the innermost.
    fn section(&self, key: &str) -> &'s Section<'t, 'a> {
        self.step.filter(|step| step.has(key)).unwrap_or(self.stream)
    }

    fn parsed<T>(&self, key: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
        self.section(key).parsed(key, parse)
    }

    fn step(
        &self,
        devices: &[Placed],
        instances: u64,
        own: &mut Vec<(Kind, Space)>,
        is_first: bool,
    ) -> Result<Step, String> {
        let innermost = self.step.unwrap_or(self.stream);
        let sizes = self.parsed("sizes", str::parse)?;
        let sizes: Sizes = sizes.map_or_else(|| "4k".parse(), Ok)?;
        let redraws = self.section("redraw_sizes").flag("redraw_sizes")?.unwrap_or(false);
        let flag = |key| self.step.map_or(Ok(None), |step| step.flag(key));
        let is_same = flag("same")?.unwrap_or(false);
        let place = if is_same {
            if is_first {
                return Err(innermost.error("same", "the first step has no request before it; remove the key"));
            }
            let own_keys = ["sizes", "redraw_sizes", "positions", "align", "device", "region", "own_region"];
            if let Some(key) = own_keys.into_iter().find(|key| innermost.has(key)) {
                return Err(innermost.error(
                    key,
                    "the step has the place of the request before it (same = true); remove one of the keys",
                ));
            }
            Place::Same
        } else {
            self.region(devices, instances, &sizes, redraws, own)?
        };
        let repeat = self.step.map_or(Ok(None), |step| step.parsed("repeat", above_zero(parse_count)))?.unwrap_or(1);
        if repeat > MAX_REPEATS {
            return Err(innermost.error("repeat", &format!("too large; use at most {MAX_REPEATS}")));
        }
        let is_waiting = flag("wait")?.unwrap_or(true);
        Ok(Step { mix: self.mix()?, sizes, redraws, place, repeat: repeat as u32, is_waiting })
    }

    fn mix(&self) -> Result<Mix, String> {
        let section = self.step.filter(|step| step.has("op") || step.has("mix")).unwrap_or(self.stream);
        let op = section.parsed("op", |text| {
            let known = ["read", "write", "flush", "fua", "discard"];
            match known.contains(&text) {
                true => format!("{text}=1").parse::<Mix>(),
                false => Err(format!("unknown operation `{text}`; {}", did_you_mean(text, known.into_iter()))),
            }
        })?;
        match (op, section.parsed("mix", str::parse)?) {
            (Some(_), Some(_)) => Err(section.error("mix", "set `op` or `mix`, not both")),
            (Some(mix), None) | (None, Some(mix)) => Ok(mix),
            (None, None) => {
                let innermost = self.step.unwrap_or(self.stream);
                Err(innermost.error("op", "missing: set op = \"read\", for example, or mix = \"read=70,write=30\""))
            }
        }
    }

    fn region(
        &self,
        devices: &[Placed],
        instances: u64,
        sizes: &Sizes,
        redraws: bool,
        own: &mut Vec<(Kind, Space)>,
    ) -> Result<Place, String> {
        let device = self.parsed("device", |name| {
            let known = devices.iter().map(|device| device.name.as_str());
            let device = devices.iter().find(|device| device.name == name);
            device.ok_or_else(|| format!("unknown device {name}; {}", did_you_mean(name, known)))
        })?;
        let device = match (device, devices) {
            (Some(device), _) | (None, [device]) => device,
            _ => {
                let innermost = self.step.unwrap_or(self.stream);
                return Err(innermost.error("device", "missing: the program has several devices; name one of them"));
            }
        };
        let region = self.parsed("region", Region::parse)?.unwrap_or(Region::ALL);
        let (first, size) = region.of(device.size).map_err(|why| self.section("region").error("region", &why))?;
        let align = self.parsed("align", |text| above_zero(|text| Ok(parse_sectors(text)?.0))(text))?.unwrap_or(8);
        let is_own = self.section("own_region").flag("own_region")?.unwrap_or(false);
        let stride = if is_own { size / instances / align * align } else { 0 };
        let size = if is_own { stride } else { size };
        let fitting = sizes.largest_within(Sectors(size)).filter(|_| redraws);
        let largest = fitting.unwrap_or_else(|| sizes.largest());
        let why = |why: String| {
            let key = if is_own { "own_region" } else { "sizes" };
            self.section(key).error(key, &format!("{why}; use smaller sizes or a larger region"))
        };
        let space = Space::new(Sectors(size), Sectors(align), largest).map_err(why)?.with_smallest(sizes.smallest());
        let append = self.parsed("positions", |text| Ok(text.trim() == "append"))?.unwrap_or(false);
        let which = if append {
            Which::Append { next: AtomicU64::new(0), size, align }
        } else {
            let kind = self.parsed("positions", |text| {
                let kind = positions::parse(text)?;
                positions::build(&kind, space, 1)?;
                Ok(kind)
            })?;
            own.push((kind.map_or_else(|| positions::parse("uniform"), Ok)?, space));
            Which::Own(own.len() - 1)
        };
        if append && redraws {
            return Err(self
                .section("redraw_sizes")
                .error("redraw_sizes", "`append` draws the size first; remove the key"));
        }
        if append && is_own {
            return Err(self.section("own_region").error(
                "own_region",
                "`append` is for all instances together; use positions = \"sequential\", or remove own_region",
            ));
        }
        Ok(Place::Region { device: device.id, first: device.first + first, stride, size, which })
    }
}
