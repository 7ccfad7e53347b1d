//! From the text of a program to its streams.

use std::collections::BTreeMap;

use iosonar_trace::Sectors;
use iosonar_trace::params::{self, Section, Text, did_you_mean};
use toml::Spanned;
use toml::de::DeTable;

use super::devices::placed;
use super::keys::PROGRAM;
use super::model::{Layout, Program, Settings, StreamInfo};
use super::placement::Placement;
use super::recorded::Loads;
use super::scripted::Files;
use super::stream::{Stream, streams};
use crate::origin::Origins;

/// The size of the target on which a text is checked when it is parsed.
const CHECKED_ON: Sectors = Sectors(1 << 41);

/// The program in this text, checked with the defaults of its parameters on a large target.
pub(super) fn described(file: &str, source: &str, origins: Option<Origins>) -> Result<Program, String> {
    let converted = origins.as_ref().map(|origins| origins as &dyn params::Origins);
    let mut text = Text { file, source, set: Some(BTreeMap::new()), origins: converted };
    let table = text.parse()?;
    let (mut name, mut about) = (String::new(), String::new());
    let parameters = parameters(&text, &table)?;
    text.set = Some(parameters.iter().cloned().collect());
    let section = program(&text, &table)?;
    for (key, value) in [("name", &mut name), ("about", &mut about)] {
        *value = section.required(key, |text| Ok(text.to_owned()))?;
    }
    let devices = placed(&section, &Settings::new(Layout::Together(CHECKED_ON)))?;
    let (scripts, loads) = (Files::default(), Loads::default());
    let infos = infos(&streams(&section, &devices, 1, (&scripts, &loads))?);
    Ok(Program {
        file: file.to_owned(),
        source: source.to_owned(),
        name,
        about,
        parameters,
        device_names: devices.into_iter().map(|device| device.name).collect(),
        streams: infos,
        scripts: scripts.into_inner(),
        loads,
        left_out: Vec::new(),
        origins,
    })
}

/// What is known of the streams.
fn infos(streams: &[Stream]) -> Vec<StreamInfo> {
    let mut infos = Vec::<StreamInfo>::new();
    for stream in streams {
        // When a stream begins is known without a device if the same holds of those before it.
        let is_open = stream.is_open() && stream.after.iter().all(|&n| infos[n].is_open);
        infos.push(StreamInfo {
            name: stream.name.clone(),
            instances: stream.instances,
            is_open,
            has_timers: stream.has_timers(),
            runs_ahead: is_open && stream.can_run_ahead(),
            ends: stream.ends(),
            data: stream.data.clone(),
        });
    }
    infos
}

/// The program with these settings, read from its text.
pub(super) fn place(of: &Program, settings: &Settings) -> Result<Placement, String> {
    let mut values: BTreeMap<_, _> = of.parameters.iter().cloned().collect();
    for (name, value) in &settings.set {
        let known = of.parameters.iter().map(|(name, _)| name.as_str());
        let Some(parameter) = values.get_mut(name) else {
            let why = if of.parameters.is_empty() { "it has none".into() } else { did_you_mean(name, known) };
            return Err(format!("{} has no parameter `{name}`; {why}", of.name));
        };
        parameter.clone_from(value);
    }
    let origins = of.origins.as_ref().map(|origins| origins as &dyn params::Origins);
    let text = Text { file: &of.file, source: &of.source, set: Some(values), origins };
    let table = text.parse()?;
    let section = program(&text, &table)?;
    let devices = placed(&section, settings)?;
    let streams = streams(&section, &devices, settings.scale, (&Files::new(of.scripts.clone()), &of.loads))?;
    Ok(Placement {
        file: of.file.clone(),
        name: of.name.clone(),
        place: section.error("stream", ""),
        settings: settings.clone(),
        devices,
        infos: infos(&streams),
        streams,
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
