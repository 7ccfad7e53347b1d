//! Conditions that calls meet or not, for the transforms that choose calls.

use std::collections::HashSet;

use iosonar_trace::params::{ParamDefault, ParamSpec, ParamType, Settings, did_you_mean};

use crate::state::{Ignore, Options, State};
use crate::{Call, CallKind, Metadata, Name};

const ANY: ParamDefault = ParamDefault::Described("any");

pub const CALL: ParamSpec = list("call", "names of system calls");
pub const FAMILY: ParamSpec =
    list("family", "families of calls: open close read write seek copy sync stat list create remove rename …");
pub const THREAD: ParamSpec = list("thread", "thread numbers");
pub const PROCESS: ParamSpec = list("process", "process numbers");
pub const CONTAINER: ParamSpec = list("container", "names of containers");
pub const PATH: ParamSpec = list("path", "patterns of paths");
pub const RESULT: ParamSpec = ParamSpec {
    name: "result",
    takes: ParamType::Word(&["any", "failed", "succeeded"]),
    default: ParamDefault::Value("any"),
    help: "only calls that failed, or that succeeded",
};

const fn list(name: &'static str, help: &'static str) -> ParamSpec {
    ParamSpec { name, takes: ParamType::List, default: ANY, help }
}

/// The conditions; empty ones are met.
#[derive(Clone)]
pub struct Conditions {
    kinds: HashSet<CallKind>,
    threads: HashSet<u32>,
    processes: HashSet<u32>,
    containers: HashSet<Name>,
    paths: Ignore,
    /// Whether the call must have failed.
    failed: Option<bool>,
}

impl Conditions {
    /// The settings of all parameters above.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        Ok(Self {
            kinds: kinds(settings)?,
            threads: numbers(settings.list("thread"), "thread")?,
            processes: numbers(settings.list("process"), "process")?,
            containers: settings.list("container").iter().map(|name| Name::from(name.as_str())).collect(),
            paths: Ignore::parse(settings.list("path").join("\n").as_bytes()),
            failed: match settings.text("result") {
                "failed" => Some(true),
                "succeeded" => Some(false),
                _ => None,
            },
        })
    }

    /// Whether all calls meet them.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
            && self.threads.is_empty()
            && self.processes.is_empty()
            && self.containers.is_empty()
            && self.paths.is_empty()
            && self.failed.is_none()
    }

    /// Begins with a trace.
    pub fn applied(&self, metadata: &Metadata) -> Applied {
        let state = (!self.paths.is_empty()).then(|| State::new(metadata, Options::default()));
        Applied { conditions: self.clone(), state }
    }
}

/// Conditions for the calls of a trace.
pub struct Applied {
    conditions: Conditions,
    /// Follows descriptors, if there is a path condition.
    state: Option<State>,
}

impl Applied {
    /// Whether a call meets the conditions. Each call of the trace must be asked for.
    pub fn meets(&mut self, call: &Call) -> bool {
        let fits_path = self.fits_path(call);
        let Conditions { kinds, threads, processes, containers, failed, .. } = &self.conditions;
        let has = |set: &HashSet<u32>, number| set.is_empty() || set.contains(&number);
        fits_path
            && (kinds.is_empty() || kinds.contains(&call.kind))
            && has(threads, call.thread)
            && has(processes, call.process)
            && (containers.is_empty() || call.container.as_ref().is_some_and(|name| containers.contains(name)))
            && failed.is_none_or(|failed| failed == (call.errno != 0))
    }

    fn fits_path(&mut self, call: &Call) -> bool {
        let Some(state) = &mut self.state else { return true };
        let resolved = state.next(call);
        let fits =
            |name: &Option<Name>| name.as_ref().is_some_and(|name| self.conditions.paths.matches(name.as_bytes()));
        fits(&resolved.path) || fits(&resolved.path2)
    }
}

/// The calls of the settings `call` and `family`.
pub fn kinds(settings: &Settings) -> Result<HashSet<CallKind>, String> {
    let mut kinds = HashSet::new();
    for name in settings.list("call") {
        let kind = CallKind::from_name(name).ok_or_else(|| {
            let known = CallKind::ALL.iter().map(|kind| kind.name());
            format!("call: `{name}` is unknown; {}", did_you_mean(name, known))
        })?;
        kinds.insert(kind);
    }
    for name in settings.list("family") {
        let before = kinds.len();
        kinds.extend(CallKind::ALL.iter().filter(|kind| kind.family().name() == name));
        let mut known: Vec<&str> = CallKind::ALL.iter().map(|kind| kind.family().name()).collect();
        known.dedup();
        if before == kinds.len() && !known.contains(&name.as_str()) {
            return Err(format!("family: `{name}` is unknown; {}", did_you_mean(name, known.iter().copied())));
        }
    }
    Ok(kinds)
}

fn numbers(texts: &[String], what: &str) -> Result<HashSet<u32>, String> {
    texts.iter().map(|text| text.parse().map_err(|_| format!("{what}: `{text}` is not a number"))).collect()
}
