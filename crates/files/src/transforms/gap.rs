//! Other times between the calls of a thread.

use std::collections::HashSet;

use iosonar_trace::human::agreed;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::transforms::Built;

use super::conditions::{CALL, FAMILY, kinds};
use super::timeline::{Plan, retimed};
use super::transform::Transform;
use crate::{Call, CallKind, Metadata};

pub static TRANSFORM: Transform = Transform::of_rows(
    Definition {
        name: "gap",
        about: "Changes the gaps between a call and the next one of its thread",
        details: "A gap is computing and waiting: for locks, timers, messages. Recordings by eBPF know how long the thread\n\
                  waited; in others, all counts as computing. call and family choose the gaps by the call that they follow.\n\
                  Calls keep their duration, and no call starts before the end of a call that had ended before it.",
        params: &[
            CALL,
            FAMILY,
            factor("factor", "factor for the whole gap: 0.5 is half as long"),
            factor("compute", "factor for its computing"),
            factor("waiting", "factor for its waiting"),
            ParamSpec {
                name: "max",
                takes: ParamType::Time,
                default: ParamDefault::Described("no limit"),
                help: "longest gap",
            },
        ],
        example: "gap family=read compute=0.5",
    },
    build,
);

const fn factor(name: &'static str, help: &'static str) -> ParamSpec {
    ParamSpec { name, takes: ParamType::Number, default: ParamDefault::Described("1"), help }
}

#[derive(Clone)]
struct Gaps {
    /// Empty for all.
    kinds: HashSet<CallKind>,
    compute: f64,
    waiting: f64,
    max_ns: i64,
    /// Gaps without a waiting time.
    unknown: u64,
}

fn build(settings: &Settings) -> Built<Call> {
    let of = |name: &str| settings.optional_number(name);
    let (compute, waiting) = match (of("factor"), of("compute"), of("waiting")) {
        (Some(factor), None, None) => (factor, factor),
        (None, compute, waiting) => (compute.unwrap_or(1.0), waiting.unwrap_or(1.0)),
        _ => return Err("set factor, or compute and waiting".into()),
    };
    let max_ns = settings.optional_time("max").map_or(i64::MAX, |max| max.0);
    if !(0.0..=1e6).contains(&compute) || !(0.0..=1e6).contains(&waiting) || max_ns < 0 {
        return Err("factors are from 0 to 1000000, and max is not negative".into());
    }
    if compute == 1.0 && waiting == 1.0 && max_ns == i64::MAX {
        return Err("set factor, compute, waiting or max: nothing would change".into());
    }
    let gaps = Gaps { kinds: kinds(settings)?, compute, waiting, max_ns, unknown: 0 };
    retimed(Box::new(move |_| Box::new(gaps.clone())))
}

impl Plan for Gaps {
    fn gap(&mut self, after: CallKind, gap: i64, call: &Call) -> i64 {
        if gap <= 0 || !self.kinds.is_empty() && !self.kinds.contains(&after) {
            return gap;
        }
        let changed = if self.compute == self.waiting {
            gap as f64 * self.compute
        } else {
            self.unknown += u64::from(call.waited.is_none());
            let waited = call.waited.map_or(0, |waited| waited.0.clamp(0, gap));
            (gap - waited) as f64 * self.compute + waited as f64 * self.waiting
        };
        (changed.round() as i64).min(self.max_ns)
    }

    fn finish(&mut self, metadata: &mut Metadata) {
        if self.unknown > 0 {
            metadata.warning(agreed(self.unknown, "gaps changed as computing: how long the thread waited is unknown"));
        }
    }
}
