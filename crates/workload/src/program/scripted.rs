//! A stream that is a script: reads its keys, and makes filaments of its instances.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use iosonar_trace::params::{Section, parse_count, parse_sectors};
use iosonar_trace::{Sectors, small_file, system_text};
use toml::de::DeTable;

use super::parts::{self, Placed, above_zero, generator};
use super::plan::{Place, Plan};
use crate::filament::Runtime;
use crate::script::{self, Area, Kinds, NamedDevice, Receiver, Script, Settings, Source, Times};

/// The texts of the files of scripts, by their names; read once, so that all of a run has the same.
pub(super) type Files = RefCell<BTreeMap<String, String>>;

/// Keys that a script has in the place of other keys.
const OF_OTHERS: [&str; 16] = [
    "arrivals",
    "closed",
    "think",
    "rate_limit",
    "after",
    "requests",
    "bytes",
    "passes",
    "flush_every",
    "op",
    "mix",
    "sizes",
    "redraw_sizes",
    "positions",
    "align",
    "step",
];

/// A script with the settings of its stream.
pub(super) struct Scripted {
    source: Source,
    settings: Settings,
    pub kinds: Kinds,
}

/// Whether a stream is a script.
pub(super) fn is_script(table: &DeTable<'_>) -> bool {
    table.contains_key("script") || table.contains_key("code")
}

impl Scripted {
    /// Adds the instances to a runtime.
    pub fn add_to(
        &self,
        runtime: &mut Runtime,
        stream: u16,
        plan: &Arc<Plan>,
        seed: u64,
        receivers: &BTreeMap<String, Receiver>,
    ) -> Result<(), String> {
        let settings = Settings { seed, streams: receivers.clone(), ..self.settings.clone() };
        let instances = settings.instances;
        let script = Script::new(self.source.clone(), settings)?;
        let starts = (0..instances)
            .map(|number| (plan.start_of(number), [1, 2, 3].map(|part| generator(seed, stream, number, part))));
        script::add_to(script, runtime, Times { end: plan.end, stream }, starts)
    }

    pub fn largest(&self) -> Sectors {
        self.settings.largest
    }
}

/// The number of instances.
pub(super) fn instances(section: &Section<'_, '_>, scale: u64) -> Result<u64, String> {
    if let Some(key) = OF_OTHERS.into_iter().find(|key| section.has(key)) {
        return Err(section.error(key, "the script says when and where requests go; remove the key, or the script"));
    }
    let instances = parts::instances(section, scale)?;
    if instances > script::MAX_INSTANCES {
        let most = script::MAX_INSTANCES;
        let why = format!("{instances} instances of a script; use at most {most} for each stream");
        return Err(section.error("instances", &why));
    }
    Ok(instances)
}

/// Reads a stream that is a script, with its instances and their place. `others` are the names of all streams that are.
pub(super) fn read(
    section: &Section<'_, '_>,
    name: &str,
    devices: &[Placed],
    (instances, place): (u32, Place),
    others: &[String],
    files: &Files,
) -> Result<(Plan, Scripted), String> {
    let source = source(section, name, files)?;
    let count = |key| section.parsed(key, above_zero(parse_count));
    let depth = count("depth")?.unwrap_or(u64::from(script::DEPTH));
    if depth > script::MAX_DEPTH {
        return Err(section.error("depth", &format!("too large; use at most {}", script::MAX_DEPTH)));
    }
    let depth = depth as u32;
    let largest = section.parsed("largest", |text| above_zero(|text| Ok(parse_sectors(text)?.0))(text))?;
    let largest = largest.map_or(script::LARGEST, Sectors);
    let (start, ramp_up, end) = parts::times(section)?;
    let Place::Region { device, first, stride, size, .. } = place else {
        return Err(section.error("region", "a script needs a region of its own"));
    };
    let area = Area { device, first, stride, size };
    let whole = |device: &Placed| {
        let area = Area { device: device.id, first: device.first, stride: 0, size: device.size.0 };
        NamedDevice { name: device.name.clone(), area }
    };
    // Who they are is not known yet, and does not matter before the run.
    let unknown = Receiver { first: None, instances: u32::MAX };
    let settings = Settings {
        area,
        devices: devices.iter().map(whole).collect(),
        instances,
        depth,
        largest,
        set: section.text.set.clone().unwrap_or_default(),
        streams: others.iter().map(|name| (name.clone(), unknown)).collect(),
        seed: 1,
    };
    let probe = Script::new(source.clone(), Settings { instances: 1, ..settings.clone() })?;
    let kinds = probe.kinds([1, 2, 3].map(|part| generator(1, 0, 0, part)))?;
    let stagger = ramp_up.0 as f64 / f64::from(instances);
    let plan = Plan { depth, is_waiting: !kinds.is_open, ..Plan::of_times(instances, start, stagger, end) };
    Ok((plan, Scripted { source, settings, kinds }))
}

/// The text: of a file beside that of the program, or of the key itself.
fn source(section: &Section<'_, '_>, stream: &str, files: &Files) -> Result<Source, String> {
    let (program, stream) = (section.text.file, stream.to_owned());
    if section.has("script") && section.has("code") {
        return Err(section.error("code", "set `script` (a file) or `code` (the text), not both"));
    }
    if let Some((line, text)) = section.verbatim("code")? {
        return Ok(Source { file: program.to_owned(), stream, first_line: line, text: text.to_owned() });
    }
    let name = section.text("script")?.unwrap_or_default();
    let path = Path::new(program).with_file_name(&name).display().to_string();
    if !files.borrow().contains_key(&name) {
        let text = small_file::read_text(Path::new(&path))
            .map_err(|why| section.error("script", &format!("cannot read {path}: {}", system_text(&why))))?;
        files.borrow_mut().insert(name.clone(), text);
    }
    let text = files.borrow().get(&name).cloned().unwrap_or_default();
    Ok(Source { file: path, stream, first_line: 1, text })
}
