//! From the text of a program to filaments.

use std::collections::BTreeMap;
use std::sync::Arc;

use iosonar_trace::params::{Section, Text, did_you_mean};
use iosonar_trace::{Device, Nanos, Op, Sectors};
use toml::Spanned;
use toml::de::DeTable;

use super::devices::{device_texts, placed, sizes};
use super::keys::PROGRAM;
use super::memory;
use super::model::{Demand, Layout, Program, Settings, StreamInfo};
use super::plan::{Follower, Place};
use super::recorded::Loads;
use super::scripted::Files;
use super::stream::{Source, receivers, streams};
use crate::filament::{FilamentId, Runtime};
use crate::generated::refuse_many;
use crate::origin::Origins;

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
