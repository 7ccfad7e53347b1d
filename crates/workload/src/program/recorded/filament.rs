//! The filament of a load: it asks for each request at its time.

use iosonar_trace::{Nanos, Op, Reader, Request, Sector, Sectors, open_load};

use super::settings::Recorded;
use crate::filament::{Event, Filament, FilamentContext, MAX_EVENTS, RequestSpec, Runtime};

/// Reads a load, and asks for its requests.
pub(super) struct LoadFilament {
    of: Recorded,
    rows: Box<dyn Reader<Request>>,
    /// Passes before this one.
    pass: u64,
    /// Requests of the load that were read in this pass.
    number: u64,
    /// The time of the last one.
    last: Nanos,
    /// The next request with its time.
    next: Option<(Nanos, Request)>,
}

impl Recorded {
    /// Adds the filament to a runtime.
    pub fn add_to(&self, runtime: &mut Runtime, stream: u16) -> Result<(), String> {
        runtime.add(Box::new(LoadFilament::open(self.clone())?), stream, self.start);
        Ok(())
    }
}

impl LoadFilament {
    /// Opens the load.
    pub fn open(of: Recorded) -> Result<Self, String> {
        let rows = open(&of)?;
        Ok(Self { of, rows, pass: 0, number: 0, last: Nanos(i64::MIN), next: None })
    }

    /// The next request with its time; `None` after the last one of the last pass.
    fn next(&mut self) -> Result<Option<(Nanos, Request)>, String> {
        loop {
            match self.rows.next().map_err(|why| format!("{}{why}", self.of.place))? {
                Some(request) => {
                    self.number += 1;
                    if request.at < self.last {
                        return Err(self.wrong("is earlier than the one before it; sort the load: iosonar convert"));
                    }
                    self.last = request.at;
                    if request.device == self.of.from {
                        return Ok(Some((self.of.at(self.pass, request.at), request)));
                    }
                }
                None if self.number == 0 => return Err(self.wrong("is missing: the load has become empty")),
                None if self.pass + 1 < self.of.passes => {
                    (self.pass, self.number, self.last) = (self.pass + 1, 0, Nanos(i64::MIN));
                    self.rows = open(&self.of)?;
                }
                None => return Ok(None),
            }
        }
    }

    /// An error about the last request that was read.
    fn wrong(&self, what: &str) -> String {
        let Recorded { place, path, .. } = &self.of;
        format!("{place}{}: request {} {what}", path.display(), self.number.max(1))
    }

    /// The request where the program has it: positions beyond the region wrap around, and what would cross its end is moved
    /// to end there.
    fn spec(&self, request: &Request) -> Result<RequestSpec, String> {
        let area = &self.of.area;
        let (mut sector, mut sectors) = (request.sector, request.sectors);
        if sectors.0 > area.size {
            if matches!(request.op, Op::Read | Op::Write) {
                return Err(self.wrong("is longer than the region: the load has changed since it was checked"));
            }
            // A discard can be as long as its device.
            sectors = Sectors(area.size);
        }
        if sectors.0 > 0 {
            sector = Sector(area.first + (sector.0 % area.size).min(area.size - sectors.0));
        }
        Ok(RequestSpec { op: request.op, flags: request.flags, device: area.device, sector, sectors, tag: 0 })
    }

    fn go_on(&mut self, context: &mut FilamentContext<'_>) -> Result<(), String> {
        for _ in 1..MAX_EVENTS {
            let next = match self.next.take() {
                Some(next) => Some(next),
                None => self.next()?,
            };
            let Some((at, request)) = next.filter(|(at, _)| *at < self.of.end) else {
                context.end();
                return Ok(());
            };
            if at > context.now() {
                self.next = next;
                context.timer(at);
                return Ok(());
            }
            context.issue(self.spec(&request)?);
        }
        // The others of this time.
        context.timer(context.now());
        Ok(())
    }
}

fn open(of: &Recorded) -> Result<Box<dyn Reader<Request>>, String> {
    open_load(&of.path).map_err(|why| format!("{}{why}", of.place))
}

impl Filament for LoadFilament {
    fn wake(&mut self, _event: Event, context: &mut FilamentContext<'_>) {
        if let Err(why) = self.go_on(context) {
            context.fail(why);
        }
    }

    fn max_pending(&self) -> u32 {
        1
    }
}
