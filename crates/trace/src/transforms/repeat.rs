//! Repeats a load.

use crate::error::Result;
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::model::units::{Nanos, Sectors};
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::counted::{Counted, Source, outside, place};
use super::spool::{Spool, SpoolWriter};
use super::{Built, Length, Needs, Rows, Transform};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "repeat",
        about: "Repeats the load, endlessly by default",
        details: "The working set stays the same unless each iteration is shifted (offset), or a `slip` follows.\n\
                  Keeps the load in a temporary file. Put a `select to=` that ends it directly after it: `repeat |\n\
                  clip from=1T | select to=1h` never ends if `clip` drops everything.",
        params: &[
            ParamSpec {
                name: "times",
                takes: ParamType::Count,
                default: ParamDefault::Described("endless"),
                help: "number of iterations",
            },
            ParamSpec {
                name: "offset",
                takes: ParamType::Sectors,
                default: ParamDefault::Value("0"),
                help: "shift of each iteration against the previous one",
            },
            ParamSpec {
                name: "period",
                takes: ParamType::Time,
                default: ParamDefault::Described(
                    "its length, plus the mean distance between requests; 1 s if all have the same time",
                ),
                help: "time from one iteration to the next",
            },
        ],
        example: "repeat times=5 offset=1G",
    },
    // The first iteration streams.
    needs: Needs::Rows,
    length: |settings| if settings.optional_count("times").is_some() { Length::Kept } else { Length::Endless },
    build,
};

fn build(settings: &Settings) -> Built {
    let (times, offset) = (settings.optional_count("times"), settings.sectors("offset"));
    let period = settings.optional_time("period");
    if times == Some(0) {
        return Err("times must be at least 1".into());
    }
    if period.is_some_and(|period| period.0 <= 0) {
        return Err("the period must be above zero".into());
    }
    Ok(Box::new(move |rows| {
        let metadata = rows.metadata().clone();
        let repeat =
            Repeat { times, offset, period, metadata, iteration: 0, phase: Phase::First(rows, SpoolWriter::new()?) };
        Ok(if offset.0 == 0 { Counted::on_same_devices(repeat) } else { Counted::on_devices_of_any_size(repeat) })
    }))
}

struct Repeat {
    times: Option<u64>,
    offset: Sectors,
    period: Option<Nanos>,
    /// The load's metadata, from the end of the first iteration.
    metadata: Metadata,
    iteration: u64,
    phase: Phase,
}

enum Phase {
    /// The first iteration, stored as it streams.
    First(Rows, SpoolWriter),
    /// A later iteration: the stored requests, the next one's number, and the period.
    Later(Spool, u64, Nanos),
    Done,
}

impl Source for Repeat {
    fn next(&mut self) -> Result<Option<Request>> {
        loop {
            match &mut self.phase {
                Phase::Done => return Ok(None),
                Phase::First(rows, writer) => {
                    if let Some(request) = rows.next()? {
                        writer.push(&request)?;
                        return Ok(Some(request));
                    }
                    self.end_first()?;
                }
                Phase::Later(spool, next, period) => {
                    if *next < spool.len() {
                        let mut request = spool.get(*next)?;
                        *next += 1;
                        let iteration = self.iteration;
                        let outside = |setting| outside("repeat", setting, iteration * spool.len() + *next);
                        let passed =
                            i64::try_from(iteration).ok().and_then(|iteration| period.0.checked_mul(iteration));
                        let at = passed.and_then(|passed| passed.checked_add(request.at.0));
                        request.at = Nanos(at.ok_or_else(|| outside("period= or times="))?);
                        if request.is_empty() {
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
            (Phase::Later(spool, next, _), Some(times)) => {
                Some((self.iteration as f64 + *next as f64 / spool.len() as f64) / times as f64)
            }
            _ => None,
        }
    }
}

impl Repeat {
    fn end_first(&mut self) -> Result<()> {
        let Phase::First(rows, writer) = std::mem::replace(&mut self.phase, Phase::Done) else { return Ok(()) };
        self.metadata = rows.metadata().clone();
        let mut spool = writer.finish()?;
        self.iteration = 1;
        // An empty load stays empty.
        if spool.len() == 0 || self.times == Some(1) {
            return Ok(());
        }
        let (first, last) = (spool.get(0)?.at, spool.get(spool.len() - 1)?.at);
        let span = last - first;
        // An iteration must not begin before the previous one ended: rows are in the order of time.
        let natural = match span.0 {
            // The distance between requests is unknown.
            0 => Nanos(1_000_000_000),
            _ => (span + Nanos(span.0 / (spool.len() as i64 - 1))).max(span + Nanos(1)),
        };
        let period = self.period.unwrap_or(natural);
        if period < span {
            let problem = format!("repeat: the load lasts {span}, longer than the period of {period}");
            return Err(crate::Error::Request(problem));
        }
        self.phase = Phase::Later(spool, 0, period);
        Ok(())
    }
}
