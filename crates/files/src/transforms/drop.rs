//! A trace without some of its calls.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::transforms::Built;

use super::conditions::{Applied, CALL, CONTAINER, Conditions, FAMILY, PATH, PROCESS, RESULT, THREAD};
use super::timeline::{Plan, retimed};
use super::transform::{Stage, Step, Transform, stage};
use crate::{Call, CallKind, Metadata};

pub static TRANSFORM: Transform = Transform::of_rows(
    Definition {
        name: "drop",
        about: "Leaves out the calls that meet all conditions",
        details: "With time=close, each further call of the thread moves forward by the duration of the calls left out, but\n\
                  never before the end of a call that had ended before it. Without calls that make descriptors, such as\n\
                  openat, a replay does not know what the other calls use.",
        params: &[
            CALL,
            FAMILY,
            THREAD,
            PROCESS,
            CONTAINER,
            PATH,
            RESULT,
            ParamSpec {
                name: "time",
                takes: ParamType::Word(&["keep", "close"]),
                default: ParamDefault::Value("keep"),
                help: "keep the times of the other calls, or close the gaps",
            },
        ],
        example: "drop fsync,fdatasync time=close",
    },
    build,
);

fn build(settings: &Settings) -> Built<Call> {
    let conditions = Conditions::new(settings)?;
    if conditions.is_empty() {
        return Err(
            "name the calls: call=fsync, family=sync, path=… (without a condition, nothing would be left)".into()
        );
    }
    if settings.text("time") == "close" {
        return retimed(Box::new(move |metadata| Box::new(Dropped(conditions.applied(metadata)))));
    }
    stage(Box::new(move |metadata: &mut Metadata| Box::new(Dropped(conditions.applied(metadata)))))
}

struct Dropped(Applied);

impl Stage for Dropped {
    fn next(&mut self, call: Call) -> Step {
        if self.0.meets(&call) { Step::Skip } else { Step::Emit(Box::new(call)) }
    }
}

impl Plan for Dropped {
    fn drops(&mut self, call: &Call) -> bool {
        self.0.meets(call)
    }

    fn gap(&mut self, _: CallKind, gap: i64, _: &Call) -> i64 {
        gap
    }
}
