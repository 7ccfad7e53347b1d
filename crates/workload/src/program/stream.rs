//! Streams: when requests come, and how many.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use iosonar_pacing::payload::DataSpec;
use iosonar_trace::params::{
    Section, Settings as Kind, did_you_mean, parse_count, parse_positive, parse_rate, parse_sectors,
};
use iosonar_trace::{Flags, Nanos, Op};
use toml::de::DeTable;

use super::instance::Instance;
use super::keys::{STEP, STREAM};
use super::parts::{Placed, above_zero, generator, instances, times};
use super::plan::{Order, Place, Plan, Step};
use super::recorded::{self, Area, Loads, OF_LOADS, Recorded, is_load};
use super::scripted::{self, Files, Scripted, is_script};
use super::step::StepSection;
use crate::filament::{FilamentId, Runtime};
use crate::length::{MAX_REQUESTS, expected};
use crate::positions::{self, Space};
use crate::script::Receiver;
use crate::{arrivals, distributions};

/// The most instances of all streams, and transactions at a time of all of them.
const MAX_INSTANCES: u64 = 1 << 30;
const MAX_STREAMS: usize = 1 << 15;

/// Transactions at a time of an instance of an open stream.
const OPEN_DEPTH: u64 = 1000;

/// A stream that can become filaments.
pub(super) struct Stream {
    pub name: String,
    pub instances: u64,
    pub arrivals: Option<Kind>,
    pub plan: Arc<Plan>,
    /// The positions that each filament has.
    pub own: Vec<(Kind, Space)>,
    /// The numbers of the streams that end before it begins.
    pub after: Vec<usize>,
    pub kind: Source,
    /// The data of its writes, if it says it.
    pub data: Option<DataSpec>,
}

/// What says when and where the requests of a stream go.
pub(super) enum Source {
    /// The other keys of the stream.
    Keys,
    Script(Scripted),
    Load(Recorded),
}

impl Stream {
    /// About what its instances need in memory.
    pub fn bytes(&self) -> u64 {
        let maps = self.own.iter().fold(0, |sum, (kind, space)| positions::bytes(kind, *space).saturating_add(sum));
        let own = self.plan.bytes_of_instance(self.own.len(), self.arrivals.is_some());
        self.instances.saturating_mul(own.saturating_add(maps))
    }

    /// The most requests of an instance at a time, if it is closed.
    pub fn closed_at_once(&self) -> u64 {
        match (&self.kind, &self.arrivals) {
            (Source::Keys, None) => u64::from(self.plan.depth).saturating_mul(self.plan.max_outstanding().into()),
            _ => 0,
        }
    }

    /// About how many requests it asks for in this time, if it is open.
    pub fn expected_requests(&self, until: Nanos) -> Result<f64, String> {
        let Some(kind) = &self.arrivals else { return Ok(0.0) };
        let (plan, instances) = (&self.plan, self.instances as f64);
        let (each, mean) = plan.of_transaction();
        let most = (plan.transactions as f64).min(plan.max_sectors as f64 / (each * mean).max(1.0));
        let until = until.min(plan.end) - plan.start;
        let transactions = match most * each * instances > MAX_REQUESTS {
            true => most.min(expected(&mut *arrivals::build(kind)?, until)),
            false => most,
        };
        Ok(transactions * each * instances)
    }

    /// Whether its requests have times that do not depend on the device.
    pub fn is_open(&self) -> bool {
        (self.arrivals.is_some() || !matches!(self.kind, Source::Keys)) && !self.plan.is_waiting
    }

    /// Whether a thread can run it ahead of the loop, if it is open.
    pub fn can_run_ahead(&self) -> bool {
        match &self.kind {
            Source::Keys => false,
            Source::Script(script) => !script.kinds.sends,
            Source::Load(_) => true,
        }
    }

    /// Whether it ends by itself.
    pub fn ends(&self) -> bool {
        self.plan.has_end() || matches!(self.kind, Source::Load(_))
    }

    /// Whether it asks for requests at times, after it has started. A script may.
    pub fn has_timers(&self) -> bool {
        let plan = &self.plan;
        self.arrivals.is_some() || !matches!(self.kind, Source::Keys) || plan.think.is_some() || plan.interval.is_some()
    }

    /// Adds these instances to a runtime, and returns the warnings of their positions.
    pub fn add_to(
        &self,
        runtime: &mut Runtime,
        stream: u16,
        seed: u64,
        instances: impl Iterator<Item = u32>,
    ) -> Result<Vec<String>, String> {
        let mut warnings = Vec::new();
        for number in instances {
            let arrivals = self.arrivals.as_ref().map(arrivals::build).transpose()?;
            // All instances have the same frequent positions, so they have the seed of the run.
            let own = self.own.iter().map(|(kind, space)| positions::build(kind, *space, seed));
            let own = own.collect::<Result<Box<[_]>, _>>()?;
            if number == 0 {
                warnings.extend(own.iter().filter_map(|positions| positions.warning()));
            }
            let rngs = [1, 2, 3].map(|part| generator(seed, stream, number, part));
            let instance = Instance::new(Arc::clone(&self.plan), number, rngs, own, arrivals);
            if self.after.is_empty() {
                runtime.add(Box::new(instance), stream, self.plan.start_of(number));
            } else {
                runtime.add_asleep(Box::new(instance), stream);
            }
        }
        Ok(warnings)
    }
}

/// Where messages to scripts go, by the names of their streams, in a runtime with so many instances of each stream.
pub(super) fn receivers(streams: &[Stream], instances: &[u64]) -> BTreeMap<String, Receiver> {
    let (mut all, mut next) = (BTreeMap::new(), 0_u64);
    for (stream, &here) in streams.iter().zip(instances) {
        let first = (here > 0).then_some(FilamentId(next as u32));
        next += here;
        if matches!(stream.kind, Source::Script(_)) {
            all.insert(stream.name.clone(), Receiver { first, instances: stream.instances as u32 });
        }
    }
    all
}

/// The streams of a program.
pub(super) fn streams(
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
        let stream = Stream { data: own.parsed("data", str::parse)?, ..stream };
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
    Ok(Stream { name, instances: 1, arrivals, plan, own, after, kind: Source::Load(load), data: None })
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
    let instances = scripted::instances(section, scale)?;
    let place = StepSection { step: None, stream: section }.region(
        devices,
        instances,
        &"4k".parse()?,
        false,
        &mut Vec::new(),
    )?;
    let (plan, script) = scripted::read(section, &name, devices, (instances as u32, place), others, files)?;
    let (plan, kind) = (Arc::new(plan), Source::Script(script));
    Ok(Stream { name, instances, arrivals: None, plan, own: Vec::new(), after: Vec::new(), kind, data: None })
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
    let instances = instances(section, scale)?;
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
    let (start, ramp_up, end) = times(section)?;
    let stagger = ramp_up.0 as f64 / instances as f64;
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
    let mut max_sectors = section.parsed("bytes", above_zero(|text| Ok(parse_sectors(text)?.0)))?.unwrap_or(u64::MAX);
    if let Some(passes) = section.parsed("passes", parse_positive)? {
        // How many requests use up a map depends on how often they become shorter.
        if steps.iter().any(|step| step.redraws) || own.iter().any(|(kind, _)| kind.name() == "random-map") {
            max_sectors = max_sectors.min((passes * covered(&steps)).clamp(1.0, 1e18) as u64);
        } else {
            transactions = transactions.min(transactions_of_passes(passes, &steps, &weights));
        }
    }
    let is_last = |_: &u64| requests.is_some_and(|requests| requests.div_ceil(of_transaction) == transactions);
    let last_repeat = rest.filter(|rest| *rest > 0).filter(is_last).map(|rest| rest as u32);
    let flush_every = count("flush_every")?.unwrap_or(0);
    let times = Plan::of_times(instances.min(MAX_INSTANCES) as u32, start, stagger, end);
    let waits_for = AtomicU32::new(after.len() as u32);
    let plan = Plan {
        steps,
        weights,
        depth,
        think,
        interval,
        transactions,
        last_repeat,
        max_sectors,
        flush_every,
        is_waiting,
        order: Order { is_after: !after.is_empty(), waits_for, ..times.order },
        ..times
    };
    let (plan, kind) = (Arc::new(plan), Source::Keys);
    Ok(Stream { name, instances, arrivals, plan, own, after, kind, data: None })
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
