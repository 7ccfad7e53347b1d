//! Storage, workload and run definitions with their defaults.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use iosonar_trace::params::did_you_mean;

use super::options::{GENERAL, RD, SD, WD};
use super::syntax::Setting;
use crate::conversion::options::{JobOption, Treatment};
use crate::conversion::{Extent, Ignored, Place};

/// A definition: its name, and its parameters with those of the default.
#[derive(Clone, Debug)]
pub struct Definition {
    pub name: String,
    pub place: Place,
    /// Whether a run uses it.
    pub is_used: Cell<bool>,
    settings: BTreeMap<&'static str, Setting>,
    /// The parameters whose values were asked for.
    read: RefCell<BTreeSet<&'static str>>,
}

/// All definitions of a file.
#[derive(Debug, Default)]
pub struct Definitions {
    pub storages: Vec<Definition>,
    pub workloads: Vec<Definition>,
    pub runs: Vec<Definition>,
    /// The workload of runs that name none.
    pub default_workload: Option<Definition>,
    /// Parameters outside of definitions.
    pub general: Option<Definition>,
    pub ignored: Vec<Ignored>,
}

impl Definitions {
    /// # Errors
    /// The parameters that are unknown or cannot be converted, a line each.
    pub fn new(all: &[Vec<Setting>]) -> Result<Self, String> {
        let (mut whole, mut problems) = (Self::default(), Vec::new());
        let mut defaults: [BTreeMap<&'static str, Setting>; 3] = Default::default();
        for settings in all {
            let first = &settings[0];
            let kind = ["sd", "wd", "rd"].iter().position(|kind| *kind == first.name);
            let known = [SD, WD, RD].get(kind.unwrap_or(3)).copied().unwrap_or(GENERAL);
            let mut own = kind.map(|kind| defaults[kind].clone()).unwrap_or_default();
            let mut has_own = false;
            for setting in settings {
                let Some(option) = find(known, &setting.name) else {
                    if has_own {
                        continue;
                    }
                    let names = known.iter().flat_map(|option| option.names).copied();
                    let near = did_you_mean(&setting.name, names);
                    problems.push(format!("{}: {}: unknown parameter; {near}", setting.place, setting.shown()));
                    continue;
                };
                let is_off = matches!(&setting.values[..], [value] if ["0", "no", "none"].iter().any(|off| value.eq_ignore_ascii_case(off)));
                match option.treatment {
                    Treatment::Refused(_) if is_off => whole.ignored.push(Ignored {
                        place: setting.place.clone(),
                        option: setting.shown(),
                        reason: "it is off".into(),
                    }),
                    Treatment::Refused(why) => {
                        problems.push(format!("{}: {}: cannot be converted: {why}", setting.place, setting.shown()));
                    }
                    Treatment::Ignored(reason) => whole.ignored.push(Ignored {
                        place: setting.place.clone(),
                        option: setting.shown(),
                        reason: reason.to_owned(),
                    }),
                    Treatment::Converted => {}
                }
                let before = own.insert(option.names[0], setting.clone());
                // Those of the default are replaced on purpose.
                if let Some(other) = before.filter(|other| kind.is_some() && settings.contains(other)) {
                    whole.ignored.push(Ignored {
                        place: other.place.clone(),
                        option: other.shown(),
                        reason: "no effect: a later one replaces it".into(),
                    });
                }
                // What follows belongs to that parameter, such as the shell of a host.
                if kind.is_none() && option.treatment != Treatment::Converted {
                    has_own = true;
                }
            }
            let name = first.values[0].clone();
            if kind.is_some() && first.values.len() > 1 {
                let why = "a definition has one name; write a line for each";
                problems.push(format!("{}: {}: {why}", first.place, first.shown()));
            }
            let is_default = name.eq_ignore_ascii_case("default");
            let same = match kind {
                Some(0) => &whole.storages[..],
                Some(1) => &whole.workloads[..],
                _ => &[],
            };
            if let Some(other) = same.iter().find(|other| other.name == name) {
                problems.push(format!("{}: {}: {} has this name already", first.place, first.shown(), other.place));
            }
            let definition = Definition::new(name, first.place.clone(), own.clone());
            match kind {
                Some(kind) if is_default => defaults[kind] = own,
                Some(0) => whole.storages.push(definition),
                Some(1) => whole.workloads.push(definition),
                Some(_) => whole.runs.push(definition),
                None => {
                    let Definition { name, place, .. } = definition;
                    let general = whole.general.get_or_insert(Definition::new(name, place, BTreeMap::new()));
                    general.settings.extend(own);
                }
            }
        }
        if let Some(run) = whole.runs.first() {
            let [_, settings, _] = defaults;
            whole.default_workload = Some(Definition::new("default".into(), run.place.clone(), settings));
        }
        if problems.is_empty() { Ok(whole) } else { Err(problems.join("\n")) }
    }
}

/// The parameter of this name, which may be abbreviated.
fn find(known: &'static [JobOption], name: &str) -> Option<&'static JobOption> {
    let exact = known.iter().find(|option| option.names.contains(&name));
    let starts = |option: &&JobOption| name.len() > 1 && option.names.iter().any(|full| full.starts_with(name));
    exact.or_else(|| {
        let mut all = known.iter().filter(starts);
        all.next().filter(|_| all.next().is_none())
    })
}

impl Definition {
    fn new(name: String, place: Place, settings: BTreeMap<&'static str, Setting>) -> Self {
        Self { name, place, settings, is_used: Cell::default(), read: RefCell::default() }
    }

    /// Its parameters, and whether their values were asked for.
    pub fn settings(&self) -> impl Iterator<Item = (&'static str, &Setting, bool)> {
        self.settings.iter().map(|(name, setting)| (*name, setting, self.read.borrow().contains(name)))
    }

    pub fn has(&self, name: &'static str) -> bool {
        self.settings.contains_key(name)
    }

    pub fn values(&self, name: &'static str) -> Option<&[String]> {
        self.read.borrow_mut().insert(name);
        self.settings.get(name).map(|setting| &setting.values[..])
    }

    /// Where a parameter is, or the definition if it has no such parameter, with what is wrong.
    pub fn error(&self, name: &'static str, why: &str) -> String {
        match self.settings.get(name) {
            Some(setting) => format!("{}: {}: {why}", setting.place, setting.shown()),
            None => format!("{}: {}: {name}: {why}", self.place, self.name),
        }
    }

    /// File, line and text of the parameter, or the definition if it has no such parameter.
    pub fn located(&self, name: &'static str) -> String {
        match self.settings.get(name) {
            Some(setting) => format!("{}: {}", setting.place, setting.shown()),
            None => format!("{}: {}", self.place, self.name),
        }
    }

    /// The parsed value, if the parameter is set. A list is refused.
    pub fn parsed<T>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let Some(values) = self.values(name) else { return Ok(None) };
        let [value] = values else {
            return Err(self.error(name, "one value, not a list; for a series of runs use iosonar sweep"));
        };
        parse(value).map(Some).map_err(|why| self.error(name, &why))
    }

    pub fn percent(&self, name: &'static str) -> Result<Option<f64>, String> {
        self.parsed(name, |text| {
            let percent =
                text.trim_end_matches('%').parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
            percent.ok_or_else(|| format!("`{text}` is not a percentage"))
        })
    }

    pub fn bytes(&self, name: &'static str) -> Result<Option<u64>, String> {
        self.parsed(name, bytes)
    }

    /// A time in microseconds; without a unit in seconds.
    pub fn micros(&self, name: &'static str) -> Result<Option<u64>, String> {
        self.parsed(name, |text| {
            let text = &text.to_ascii_lowercase()[..];
            let (digits, factor) = match text.strip_suffix(['s', 'm', 'h']) {
                Some(digits) if text.ends_with('m') => (digits, 60_000_000),
                Some(digits) if text.ends_with('h') => (digits, 3_600_000_000),
                Some(digits) => (digits, 1_000_000),
                None => (text, 1_000_000),
            };
            let time =
                digits.parse::<u64>().ok().and_then(|time| time.checked_mul(factor)).filter(|time| *time < 1 << 52);
            time.ok_or_else(|| format!("`{text}` is not a time; write for example 60 or 10m"))
        })
    }

    /// A part of a device: percentages, or bytes if they have a unit.
    pub fn range(&self, name: &'static str) -> Result<Option<(Extent, Extent)>, String> {
        let Some(values) = self.values(name) else { return Ok(None) };
        let [from, to] = values else { return Err(self.error(name, "a start and an end, as in (10,20)")) };
        let extent = |text: &str| match text.parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Extent::Percent(percent)),
            _ => bytes(text).map(Extent::Bytes),
        };
        let located = |why: String| self.error(name, &why);
        let (from, to) = (extent(from).map_err(located)?, extent(to).map_err(located)?);
        match (from, to) {
            (Extent::Percent(one), Extent::Percent(other)) if one < other => {}
            (Extent::Bytes(one), Extent::Bytes(other)) if one < other => {}
            (Extent::Percent(0.0), Extent::Bytes(1..)) => return Ok(Some((Extent::START, to))),
            _ => return Err(self.error(name, "a start below an end, both percentages or both bytes")),
        }
        Ok(Some((if from == Extent::Percent(0.0) { Extent::START } else { from }, to)))
    }
}

/// Bytes: `4096`, `4k`, `10g`, with k = 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    crate::fio::number(text, 1024).map_err(|_| format!("`{text}` is not a number of bytes; write for example 4k"))
}
