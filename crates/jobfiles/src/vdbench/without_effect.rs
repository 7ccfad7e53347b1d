//! Definitions and parameters that no run asks for.

use super::definitions::{Definition, Definitions, is_converted, replaced};
use super::open_flags::any_synchronous;
use super::options::{GENERAL, RD, SD, WD};
use super::syntax::Setting;
use crate::conversion::{Ignored, Place};

/// What the conversion did not use, each with the reason.
pub fn without_effect(all: &Definitions) -> Vec<Ignored> {
    let kinds = [("sd", SD, &all.storages), ("wd", WD, &all.workloads), ("rd", RD, &all.runs)];
    let mut ignored = Vec::new();
    for (kind, known, definitions) in kinds {
        let is_used = |definition: &&Definition| kind == "rd" || definition.is_used.get();
        ignored.extend(definitions.iter().filter(|definition| !is_used(definition)).map(|definition| Ignored {
            place: definition.place.clone(),
            option: format!("{kind}={}", definition.name),
            reason: "no effect: no run uses it".into(),
        }));
        // A run without workloads has those of the default.
        let default_workload = all.default_workload.iter().filter(|default| kind == "wd" && default.is_used.get());
        let used: Vec<&Definition> = definitions.iter().filter(is_used).chain(default_workload).collect();
        // A parameter of a default is one of several definitions.
        let read: Vec<(&Place, &str)> = (used.iter().copied())
            .flat_map(Definition::settings)
            .filter_map(|(name, setting, is_read)| is_read.then_some((&setting.place, name)))
            .collect();
        for (name, setting, _) in used.iter().flat_map(|definition| definition.settings()) {
            if name != kind && is_converted(known, name) && !read.contains(&(&setting.place, name)) {
                ignored.push(unread(kind, name, setting));
            }
        }
        for (name, setting) in all.defaults.iter().filter(|(of, _)| *of == kind).flat_map(|(_, settings)| settings) {
            let is_same = |(other, kept, _): (&str, &Setting, bool)| other == *name && kept == setting;
            let is_kept = used.iter().any(|definition| definition.settings().any(is_same));
            if *name != kind && is_converted(known, name) && !is_kept {
                ignored.push(replaced(setting, "no definition that a run uses takes it over"));
            }
        }
    }
    let general = all.general.iter().flat_map(Definition::settings);
    let unused = general.filter(|(name, _, is_read)| !is_read && *name != "include" && is_converted(GENERAL, name));
    ignored.extend(unused.map(|(name, setting, _)| unread("", name, setting)));
    ignored
}

fn unread(kind: &str, name: &str, setting: &Setting) -> Ignored {
    let why = match (kind, name) {
        ("", "dedupunit") => "no data of writes has its blocks",
        ("", "dedupratio") => "each device has its own, or no run writes",
        ("", _) | ("sd", "dedupratio") => "no run writes",
        ("sd", "openflags") if any_synchronous(&setting.values) => "no run writes to the device",
        ("sd", "openflags") => "requests of a program go to the device without a page cache",
        ("rd", "pause") => "no run comes after it",
        ("rd", "distribution") => "with iorate=max, requests have no times of their own",
        ("wd", "skew") => "the workload has a rate of its own",
        ("sd", "range") => "the run or its workload has its own",
        _ => "the run has its own",
    };
    Ignored { place: setting.place.clone(), option: setting.shown(), reason: format!("no effect: {why}") }
}
