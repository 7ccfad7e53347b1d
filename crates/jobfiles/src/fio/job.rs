//! A job: its options with those of the `[global]` sections above it.

use std::collections::{BTreeMap, BTreeSet};

use iosonar_trace::params::did_you_mean;

use super::options::{OPTIONS, find};
use super::syntax::{JobFile, Setting};
use super::values::{micros, number, triple};
use crate::conversion::options::Treatment;
use crate::conversion::{Ignored, Place};

/// A job of the file.
#[derive(Clone, Debug)]
pub struct Job {
    pub name: String,
    pub place: Place,
    /// By the first name of each option; the number is the option's place in the order of all.
    settings: BTreeMap<&'static str, (usize, Setting)>,
    kb_base: u64,
}

/// The jobs, and the options that do not change which requests they make.
///
/// # Errors
/// The options that are unknown or cannot be converted, a line each.
pub fn jobs(file: &JobFile) -> Result<(Vec<Job>, Vec<Ignored>), String> {
    let (mut jobs, mut problems, mut written) = (Vec::<Job>::new(), Vec::new(), Vec::new());
    let mut global = BTreeMap::new();
    let mut order = 0;
    for section in &file.sections {
        let is_global = section.name.eq_ignore_ascii_case("global");
        let mut settings = global.clone();
        for setting in &section.settings {
            let Some(option) = find(&setting.name) else {
                let known = OPTIONS.iter().flat_map(|option| option.names).copied();
                let near = did_you_mean(&setting.name, known.clone());
                // The list of all options would be two pages long.
                let near =
                    if near.starts_with("known") { "docs/generated/job-options.md lists fio's options" } else { &near };
                problems.push(format!("{}: {}: unknown option; {near}", setting.place, setting.name));
                continue;
            };
            order += 1;
            written.push((setting, is_global));
            settings.insert(option.names[0], (order, setting.clone()));
        }
        if is_global {
            global = settings;
        } else {
            jobs.push(Job::new(&section.name, &section.place, settings)?);
        }
    }
    let mut ignored = Vec::new();
    for job in &jobs {
        // One reason is enough for a job of other work.
        if let Some(why) = other_engine(job) {
            problems.push(why);
            continue;
        }
        for (name, (_, setting)) in &job.settings {
            match find(name).map(|option| option.treatment) {
                Some(Treatment::Refused(why)) if !is_off(setting) => {
                    problems.push(format!("{}: {}: cannot be converted: {why}", setting.place, shown(setting)));
                }
                Some(Treatment::Refused(_)) => ignored.push(Ignored {
                    place: setting.place.clone(),
                    option: shown(setting),
                    reason: "it is off".into(),
                }),
                Some(Treatment::Ignored(why)) => ignored.push(Ignored {
                    place: setting.place.clone(),
                    option: shown(setting),
                    reason: why.to_owned(),
                }),
                _ => {}
            }
        }
    }
    let used: BTreeSet<(&Place, &str)> = jobs
        .iter()
        .flat_map(|job| job.settings.values().map(|(_, setting)| (&setting.place, &setting.name[..])))
        .collect();
    for (setting, is_global) in written {
        if !used.contains(&(&setting.place, &setting.name[..])) {
            let why = if is_global { "no job below it has it" } else { "a later line replaces it" };
            let reason = format!("no effect: {why}");
            ignored.push(Ignored { place: setting.place.clone(), option: shown(setting), reason });
        }
    }
    // An option of [global] counts for several jobs.
    ignored.sort_by(|a, b| (&a.place, &a.option).cmp(&(&b.place, &b.option)));
    ignored.dedup();
    let mut seen = BTreeSet::new();
    problems.retain(|problem| seen.insert(problem.clone()));
    if jobs.is_empty() && problems.is_empty() {
        problems.push("the file has no job; add a section: [JOB]".into());
    }
    if problems.is_empty() { Ok((jobs, ignored)) } else { Err(problems.join("\n")) }
}

/// Engines that make no requests of reads, writes or discards to storage.
const OTHER_ENGINES: &[&str] = &[
    "cpuio",
    "net",
    "netsplice",
    "rdma",
    "librpma_apm_client",
    "librpma_apm_server",
    "librpma_gpspm_client",
    "librpma_gpspm_server",
    "http",
    "exec",
    "falloc",
    "ftruncate",
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirstat",
    "dirdelete",
    "e4defrag",
];

fn other_engine(job: &Job) -> Option<String> {
    let engine = job.text("ioengine").filter(|engine| OTHER_ENGINES.contains(engine))?;
    let why = format!("cannot be converted: {engine} makes no reads, writes or discards of storage");
    Some(job.error("ioengine", &why))
}

/// The option as it was written.
pub fn shown(setting: &Setting) -> String {
    setting.value.as_ref().map_or_else(|| setting.name.clone(), |value| format!("{}={value}", setting.name))
}

/// Whether the value switches the option off.
pub fn is_off(setting: &Setting) -> bool {
    matches!(setting.value.as_deref(), Some("0" | "none" | "false" | "no"))
}

impl Job {
    fn new(section: &str, place: &Place, settings: BTreeMap<&'static str, (usize, Setting)>) -> Result<Self, String> {
        let mut job = Self { name: section.to_owned(), place: place.clone(), settings, kb_base: 1024 };
        if let Some(base) = job.number("kb_base")? {
            if base != 1000 && base != 1024 {
                return Err(job.error("kb_base", "it is 1000 or 1024"));
            }
            job.kb_base = base;
        }
        if let Some(name) = job.text("name") {
            job.name = name.to_owned();
        }
        Ok(job)
    }

    /// The options that are set, by their first names.
    pub fn options(&self) -> impl Iterator<Item = (&'static str, &Setting)> {
        self.settings.iter().map(|(name, (_, setting))| (*name, setting))
    }

    /// The same job without some options.
    pub fn without(&self, options: &[&str]) -> Self {
        let mut job = self.clone();
        job.settings.retain(|name, _| !options.contains(name));
        job
    }

    pub fn has(&self, option: &'static str) -> bool {
        self.settings.contains_key(option)
    }

    pub fn setting(&self, option: &'static str) -> Option<&Setting> {
        self.settings.get(option).map(|(_, setting)| setting)
    }

    /// The text of its value; `1` without one.
    pub fn text(&self, option: &'static str) -> Option<&str> {
        self.settings.get(option).map(|(_, setting)| setting.value.as_deref().unwrap_or("1"))
    }

    /// Whether the first of two options was set after the second.
    pub fn is_later(&self, one: &'static str, other: &'static str) -> bool {
        let order = |option| self.settings.get(option).map_or(0, |(order, _)| *order);
        order(one) > order(other)
    }

    /// Where an option is, or the job if it has no such option, with why it cannot be converted.
    pub fn error(&self, option: &'static str, why: &str) -> String {
        match self.settings.get(option) {
            Some((_, setting)) => format!("{}: {}: {why}", setting.place, shown(setting)),
            None => format!("{}: job {}: {option}: {why}", self.place, self.name),
        }
    }

    /// File, line and text of the option, or the job if it has no such option.
    pub fn located(&self, option: &'static str) -> String {
        match self.settings.get(option) {
            Some((_, setting)) => format!("{}: {}", setting.place, shown(setting)),
            None => format!("{}: job {}", self.place, self.name),
        }
    }

    /// The parsed value, if the option is set.
    pub fn parsed<T>(
        &self,
        option: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let parsed = self.text(option).map(parse).transpose();
        parsed.map_err(|why| self.error(option, &why))
    }

    /// A number, in bytes if it has a unit.
    pub fn number(&self, option: &'static str) -> Result<Option<u64>, String> {
        self.parsed(option, |text| self.number_of(text))
    }

    /// A number of this job's `kb_base`.
    pub fn number_of(&self, text: &str) -> Result<u64, String> {
        number(text, self.kb_base)
    }

    /// A number above zero.
    pub fn count(&self, option: &'static str) -> Result<Option<u64>, String> {
        self.parsed(option, |text| match self.number_of(text)? {
            0 => Err("it is 0; set it to 1 or more".into()),
            count => Ok(count),
        })
    }

    /// A switch: off if it is not set.
    pub fn flag(&self, option: &'static str) -> Result<bool, String> {
        let flag = self.parsed(option, |text| match text {
            "0" | "false" => Ok(false),
            _ if text == "true" || number(text, 1024).is_ok() => Ok(true),
            _ => Err("it is 0 or 1".into()),
        });
        Ok(flag?.unwrap_or(false))
    }

    /// A time in microseconds.
    pub fn micros(&self, option: &'static str, default_unit: &str) -> Result<Option<u64>, String> {
        self.parsed(option, |text| micros(text, default_unit))
    }

    /// The values for reads, writes and discards.
    pub fn triple<T>(
        &self,
        option: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<[Option<T>; 3], String> {
        let all = self.parsed(option, |text| {
            let [read, write, discard] = triple(text)?.map(|value| value.map(|text| parse(&text)).transpose());
            Ok([read?, write?, discard?])
        });
        Ok(all?.unwrap_or([None, None, None]))
    }
}
