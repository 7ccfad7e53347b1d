//! Some calls of a trace.

use std::collections::HashSet;

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, did_you_mean};
use iosonar_trace::transforms::Built;

use super::transform::{Stage, Step, Transform, stage};
use crate::state::{Ignore, Options, State};
use crate::{Call, CallKind, Metadata, Name};

const ANY: ParamDefault = ParamDefault::Described("any");

pub static TRANSFORM: Transform = Transform::of_rows(
    Definition {
        name: "select",
        about: "Keeps the calls that meet all conditions",
        details: "Calls that make descriptors and processes are left out as well unless they fulfil the conditions. A replay\n\
                  then infers what the remaining calls use, as for a trace that begins in the middle. A path condition\n\
                  applies to the file that a call uses, also if it names a descriptor only. A pattern matches a path and\n\
                  all that is below it: * and ? match within a component, ** any number of components; without a slash at\n\
                  its beginning it matches in every directory.",
        params: &[
            ParamSpec {
                name: "from",
                takes: ParamType::Time,
                default: ParamDefault::Described("the beginning"),
                help: "start of the window of time: from ≤ begin < to",
            },
            ParamSpec {
                name: "to",
                takes: ParamType::Time,
                default: ParamDefault::Described("the end"),
                help: "end of the window",
            },
            ParamSpec {
                name: "base",
                takes: ParamType::Word(&["keep", "zero"]),
                default: ParamDefault::Value("keep"),
                help: "keep the times, or count them from the start of the window",
            },
            ParamSpec { name: "call", takes: ParamType::List, default: ANY, help: "names of system calls" },
            ParamSpec {
                name: "family",
                takes: ParamType::List,
                default: ANY,
                help: "families of calls: open close read write seek copy sync stat list create remove rename …",
            },
            ParamSpec { name: "thread", takes: ParamType::List, default: ANY, help: "thread numbers" },
            ParamSpec { name: "process", takes: ParamType::List, default: ANY, help: "process numbers" },
            ParamSpec { name: "container", takes: ParamType::List, default: ANY, help: "names of containers" },
            ParamSpec { name: "path", takes: ParamType::List, default: ANY, help: "patterns of paths" },
            ParamSpec {
                name: "result",
                takes: ParamType::Word(&["any", "failed", "succeeded"]),
                default: ParamDefault::Value("any"),
                help: "only calls that failed, or that succeeded",
            },
        ],
        example: "select family=read,write path=/var/lib/** from=1m to=2m base=zero",
    },
    build,
);

/// The conditions; empty ones are fulfilled.
#[derive(Clone)]
struct Conditions {
    from: Nanos,
    to: Nanos,
    base: Nanos,
    kinds: HashSet<CallKind>,
    threads: HashSet<u32>,
    processes: HashSet<u32>,
    containers: HashSet<Name>,
    paths: Ignore,
    /// Whether the call must have failed.
    failed: Option<bool>,
}

fn build(settings: &Settings) -> Built<Call> {
    let from = settings.optional_time("from");
    let to = settings.optional_time("to").unwrap_or(Nanos(i64::MAX));
    if from.is_some_and(|from| to <= from) {
        return Err("to must be later than from".into());
    }
    let conditions = Conditions {
        from: from.unwrap_or(Nanos(i64::MIN)),
        to,
        base: if settings.text("base") == "zero" { from.unwrap_or(Nanos::ZERO) } else { Nanos::ZERO },
        kinds: kinds(settings.list("call"), settings.list("family"))?,
        threads: numbers(settings.list("thread"), "thread")?,
        processes: numbers(settings.list("process"), "process")?,
        containers: settings.list("container").iter().map(|name| Name::from(name.as_str())).collect(),
        paths: Ignore::parse(settings.list("path").join("\n").as_bytes()),
        failed: match settings.text("result") {
            "failed" => Some(true),
            "succeeded" => Some(false),
            _ => None,
        },
    };
    stage(Box::new(move |metadata: &mut Metadata| {
        let base = conditions.base.0;
        metadata.epoch_unix_ns = metadata.epoch_unix_ns.and_then(|epoch| epoch.checked_add(base));
        let state = (!conditions.paths.is_empty()).then(|| State::new(metadata, Options::default()));
        Box::new(Selected { conditions: conditions.clone(), state })
    }))
}

fn kinds(calls: &[String], families: &[String]) -> Result<HashSet<CallKind>, String> {
    let mut kinds = HashSet::new();
    for name in calls {
        let kind = CallKind::from_name(name).ok_or_else(|| {
            let known = CallKind::ALL.iter().map(|kind| kind.name());
            format!("call: `{name}` is unknown; {}", did_you_mean(name, known))
        })?;
        kinds.insert(kind);
    }
    for name in families {
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

struct Selected {
    conditions: Conditions,
    /// Follows descriptors, if there is a path condition.
    state: Option<State>,
}

impl Selected {
    fn fits_path(&mut self, call: &Call) -> bool {
        // Each call must go through it, also those that do not fulfil the other conditions.
        let Some(state) = &mut self.state else { return true };
        let resolved = state.next(call);
        let fits =
            |name: &Option<Name>| name.as_ref().is_some_and(|name| self.conditions.paths.matches(name.as_bytes()));
        fits(&resolved.path) || fits(&resolved.path2)
    }
}

impl Stage for Selected {
    fn next(&mut self, mut call: Call) -> Step {
        let conditions = &self.conditions;
        if call.begin >= conditions.to {
            return Step::End;
        }
        let has = |set: &HashSet<u32>, number| set.is_empty() || set.contains(&number);
        let others = call.begin >= conditions.from
            && (conditions.kinds.is_empty() || conditions.kinds.contains(&call.kind))
            && has(&conditions.threads, call.thread)
            && has(&conditions.processes, call.process)
            && (conditions.containers.is_empty()
                || call.container.as_ref().is_some_and(|container| conditions.containers.contains(container)))
            && conditions.failed.is_none_or(|failed| failed == (call.errno != 0));
        let base = conditions.base;
        if !self.fits_path(&call) || !others {
            return Step::Skip;
        }
        call.begin = call.begin - base;
        Step::Emit(Box::new(call))
    }
}
