//! Definitions and parameters that no run asks for.

use super::definitions::{Definition, Definitions};
use super::options::{RD, SD, WD};
use super::syntax::Setting;
use crate::conversion::options::{JobOption, Treatment};
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
        let used: Vec<&Definition> = definitions.iter().filter(is_used).collect();
        let others = all.default_workload.iter().filter(|_| kind == "wd");
        // A parameter of a default is one of several definitions.
        let read: Vec<(&Place, &str)> = (used.iter().copied().chain(others))
            .flat_map(Definition::settings)
            .filter_map(|(name, setting, is_read)| is_read.then_some((&setting.place, name)))
            .collect();
        for (name, setting, _) in used.iter().flat_map(|definition| definition.settings()) {
            if name != kind && is_converted(known, name) && !read.contains(&(&setting.place, name)) {
                ignored.push(unread(kind, name, setting));
            }
        }
    }
    ignored
}

fn is_converted(known: &[JobOption], name: &str) -> bool {
    known.iter().any(|option| option.names[0] == name && option.treatment == Treatment::Converted)
}

fn unread(kind: &str, name: &str, setting: &Setting) -> Ignored {
    let why = match (kind, name) {
        ("rd", "pause") => "no run comes after it",
        ("rd", "distribution") => "with iorate=max, requests have no times of their own",
        ("wd", "skew") => "the workload has a rate of its own",
        ("sd", "range") => "the run or its workload has its own",
        _ => "the run has its own",
    };
    Ignored { place: setting.place.clone(), option: setting.shown(), reason: format!("no effect: {why}") }
}
