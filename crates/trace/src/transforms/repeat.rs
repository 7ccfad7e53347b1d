//! The same again and again.

use crate::error::Result;
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::model::units::{Nanos, Sectors};
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::counted::{Counted, Source, outside, place};
use super::held::{Held, Holder};
use super::{Built, Length, Needs, Rows, Transform};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "repeat",
        about: "The load again and again, forever if not told otherwise",
        details: "The working set does not grow by that, unless each iteration is shifted (offset), or a `slip` follows. The\n\
                  load is kept in a temporary file: 72 bytes for each of its requests. Put a `select to=` that ends it right\n\
                  behind it: `repeat | clip from=1T | select to=1h` never ends if `clip` leaves nothing, as no request comes\n\
                  that is late enough.",
        params: &[
            ParamSpec {
                name: "times",
                takes: ParamType::Count,
                unset: ParamDefault::Means("forever"),
                help: "how many iterations",
            },
            ParamSpec {
                name: "offset",
                takes: ParamType::Sectors,
                unset: ParamDefault::Default("0"),
                help: "by how much each iteration lies behind the one before",
            },
            ParamSpec {
                name: "period",
                takes: ParamType::Time,
                unset: ParamDefault::Means(
                    "from the first request to the last, and the mean distance of two; 1 s if all have one time",
                ),
                help: "time from iteration to iteration",
            },
        ],
        example: "repeat times=5 offset=1G",
    },
    // Its first iteration streams: no need to wait for the whole.
    needs: Needs::Rows,
    length: |settings| if settings.optional_count("times").is_some() { Length::Kept } else { Length::Endless },
    build,
};

fn build(settings: &Settings) -> Built {
    let (times, offset) = (settings.optional_count("times"), settings.sectors("offset"));
    let period = settings.optional_time("period");
    if times == Some(0) {
        return Err("0 times is nothing: let times be at least 1".into());
    }
    if period.is_some_and(|period| period.0 <= 0) {
        return Err("the period must be above zero".into());
    }
    Ok(Box::new(move |rows| {
        let metadata = rows.metadata().clone();
        let repeat =
            Repeat { times, offset, period, metadata, iteration: 0, phase: Phase::First(rows, Holder::new()?) };
        Ok(if offset.0 == 0 { Counted::on_same_devices(repeat) } else { Counted::on_devices_of_any_size(repeat) })
    }))
}

struct Repeat {
    times: Option<u64>,
    offset: Sectors,
    period: Option<Nanos>,
    /// What is known of the load behind its first iteration.
    metadata: Metadata,
    iteration: u64,
    phase: Phase,
}

enum Phase {
    /// The first iteration, put aside as it goes.
    First(Rows, Holder),
    /// A later iteration: what was put aside, the next request's number, and the time between iterations.
    Later(Held, u64, Nanos),
    Done,
}

impl Source for Repeat {
    fn next(&mut self) -> Result<Option<Request>> {
        loop {
            match &mut self.phase {
                Phase::Done => return Ok(None),
                Phase::First(rows, holder) => {
                    if let Some(request) = rows.next()? {
                        holder.push(&request)?;
                        return Ok(Some(request));
                    }
                    self.end_first()?;
                }
                Phase::Later(held, next, period) => {
                    if *next < held.len() {
                        let mut request = held.get(*next)?;
                        *next += 1;
                        let iteration = self.iteration;
                        let outside = |setting| outside("repeat", setting, iteration * held.len() + *next);
                        let passed = i64::try_from(iteration).ok().and_then(|n| period.0.checked_mul(n));
                        let at = passed.and_then(|passed| passed.checked_add(request.at.0));
                        request.at = Nanos(at.ok_or_else(|| outside("period= or times="))?);
                        if request.has_no_place() {
                            return Ok(Some(request));
                        }
                        let shift = self.offset.0.checked_mul(iteration);
                        let sector = shift.and_then(|shift| shift.checked_add(request.sector.0));
                        request.sector = place(sector, request.sectors).ok_or_else(|| outside("offset= or times="))?;
                        return Ok(Some(request));
                    }
                    *next = 0;
                    self.iteration += 1;
                    if Some(self.iteration) == self.times {
                        self.phase = Phase::Done;
                    }
                }
            }
        }
    }

    fn upstream(&self) -> &Metadata {
        match &self.phase {
            Phase::First(rows, _) => rows.metadata(),
            _ => &self.metadata,
        }
    }

    fn has_all_devices(&self) -> bool {
        match &self.phase {
            Phase::First(rows, _) => rows.has_all_devices(),
            _ => true,
        }
    }

    fn progress(&self) -> Option<f64> {
        match (&self.phase, self.times) {
            (Phase::First(rows, _), Some(times)) => rows.progress().map(|done| done / times as f64),
            (Phase::Later(held, next, _), Some(times)) => {
                Some((self.iteration as f64 + *next as f64 / held.len() as f64) / times as f64)
            }
            _ => None,
        }
    }
}

impl Repeat {
    fn end_first(&mut self) -> Result<()> {
        let Phase::First(rows, holder) = std::mem::replace(&mut self.phase, Phase::Done) else { return Ok(()) };
        self.metadata = rows.metadata().clone();
        let mut held = holder.finish()?;
        self.iteration = 1;
        // An empty load stays empty, however often it is repeated.
        if held.len() == 0 || self.times == Some(1) {
            return Ok(());
        }
        let (first, last) = (held.get(0)?.at, held.get(held.len() - 1)?.at);
        let span = last - first;
        // An iteration must not begin before the last one ended: rows are in the order of time.
        let natural = match span.0 {
            // Nothing tells how far requests are apart.
            0 => Nanos(1_000_000_000),
            _ => (span + Nanos(span.0 / (held.len() as i64 - 1))).max(span + Nanos(1)),
        };
        let period = self.period.unwrap_or(natural);
        if period < span {
            let problem =
                format!("the load lasts {span}, longer than the period of {period} after which it is to begin again");
            return Err(crate::Error::Request(format!("repeat: {problem}")));
        }
        self.phase = Phase::Later(held, 0, period);
        Ok(())
    }
}
