//! Some calls of a trace.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::transforms::Built;

use super::conditions::{Applied, CALL, CONTAINER, Conditions, FAMILY, PATH, PROCESS, RESULT, THREAD};
use super::transform::{Stage, Step, Transform, stage};
use crate::{Call, Metadata};

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
            CALL,
            FAMILY,
            THREAD,
            PROCESS,
            CONTAINER,
            PATH,
            RESULT,
        ],
        example: "select family=read,write path=/var/lib/** from=1m to=2m base=zero",
    },
    build,
);

/// A window of time.
#[derive(Clone, Copy)]
struct Window {
    from: Nanos,
    to: Nanos,
    base: Nanos,
}

fn build(settings: &Settings) -> Built<Call> {
    let from = settings.optional_time("from");
    let to = settings.optional_time("to").unwrap_or(Nanos(i64::MAX));
    if from.is_some_and(|from| to <= from) {
        return Err("to must be later than from".into());
    }
    let window = Window {
        from: from.unwrap_or(Nanos(i64::MIN)),
        to,
        base: if settings.text("base") == "zero" { from.unwrap_or(Nanos::ZERO) } else { Nanos::ZERO },
    };
    let conditions = Conditions::new(settings)?;
    stage(Box::new(move |metadata: &mut Metadata| {
        let base = window.base.0;
        metadata.epoch_unix_ns = metadata.epoch_unix_ns.and_then(|epoch| epoch.checked_add(base));
        Box::new(Selected { window, conditions: conditions.applied(metadata) })
    }))
}

struct Selected {
    window: Window,
    conditions: Applied,
}

impl Stage for Selected {
    fn next(&mut self, mut call: Call) -> Step {
        let Window { from, to, base } = self.window;
        if call.begin >= to {
            return Step::End;
        }
        if !self.conditions.meets(&call) || call.begin < from {
            return Step::Skip;
        }
        call.begin = call.begin - base;
        Step::Emit(Box::new(call))
    }
}
