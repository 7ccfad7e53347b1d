//! Traces for Perfetto's viewer, ui.perfetto.dev: each request is a slice from its issue to its completion.
//!
//! They are written only. Source: <https://perfetto.dev/docs/reference/synthetic-track-event>.

mod protobuf;
#[cfg(test)]
mod tests;
mod tracks;

use tracks::{Arg, Args, Event, Tracks};

use crate::error::{Error, Result};
use crate::formats::format::Format;
use crate::formats::support::losses::Losses;
use crate::io::output::Output;
use crate::io::stream::{ConversionLoss, Writer};
use crate::model::io_result::{IoResult, Outcome};
use crate::model::metadata::{Metadata, RequestTime};
use crate::model::request::{Flags, Op, Request};
use crate::model::rwbs;
use crate::model::units::Nanos;
use crate::text::human;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "Perfetto's trace, for its viewer",
    extensions: &[".perfetto-trace"],
    is_for_viewers: true,
    recognise: begins_as_ours,
    open: |input, _| {
        let problem = "a trace for Perfetto's viewer, which iosonar cannot read back: open it in ui.perfetto.dev";
        Err(Error::format(input.path(), problem))
    },
    create_load: Some(|output, known| Ok(Box::new(TraceWriter::new(output, known)?))),
    create_run: Some(|output, known| Ok(Box::new(TraceWriter::new(output, known)?))),
    ..Format::named("perfetto")
};

/// Whether a file begins with a packet of names, as those of [`Tracks`] do.
fn begins_as_ours(head: &[u8]) -> bool {
    let Some((b'\x0a', rest)) = head.split_first().map(|(first, rest)| (*first, rest)) else { return false };
    // After its length.
    let length = rest.iter().take_while(|&&byte| byte >= 0x80).count() + 1;
    rest.get(length..).is_some_and(|packet| packet.starts_with(tracks::FIRST_PACKET))
}

struct TraceWriter {
    tracks: Tracks,
    losses: Losses,
    request_time: RequestTime,
}

impl TraceWriter {
    fn new(output: Output, known: &Metadata) -> Result<Self> {
        let is_fake = known.run.as_ref().is_some_and(|run| run.fake.text().is_some());
        let tracks = Tracks::new(output, &known.devices, if is_fake { " (fake result)" } else { "" })?;
        Ok(Self { tracks, losses: Losses::default(), request_time: known.request_time })
    }

    /// Writes a request, unless its time is impossible.
    fn put(&mut self, device: u16, op: Op, start: Nanos, end: Option<Nanos>, args: &Args) -> Result<()> {
        let Some(at) = self.losses.time(start) else { return Ok(()) };
        // A completion before the issue would not be a slice.
        let end = end.map(|end| at.saturating_add((end - start).0.max(0).unsigned_abs()));
        self.tracks.event(&Event { device, op, times: (at, end), args: args.message() })
    }

    fn finish(self, format: &str) -> Result<ConversionLoss> {
        let Self { mut tracks, losses, .. } = self;
        let mut loss = losses.conversion_loss(tracks.output(), format)?;
        if tracks.crowded > 0 {
            let requests = human::counted(tracks.crowded, "request");
            loss.warnings
                .push(format!("{requests} without a duration, because too many were in flight at the same time"));
        }
        tracks.into_output().finish()?;
        Ok(loss)
    }
}

impl Writer<Request> for TraceWriter {
    fn write(&mut self, request: &Request) -> Result<()> {
        let mut args = Args::default();
        args.number(Arg::OffsetBytes, request.sector.bytes()).number(Arg::Bytes, request.sectors.bytes());
        if request.flags != Flags::NONE {
            args.text(Arg::Rwbs, &rwbs::letters(request.op, request.flags));
        }
        if let Some(pid) = request.pid {
            args.number(Arg::Pid, pid.into());
        }
        if !request.comm.as_str().is_empty() {
            args.text(Arg::Process, request.comm.as_str());
        }
        if let Some(queued) = request.queued {
            args.signed(Arg::QueuedNs, queued.0);
        }
        let waited = request.queued.filter(|_| self.request_time == RequestTime::Queued).unwrap_or(Nanos::ZERO);
        let issued = request.at + waited;
        self.put(request.device.0, request.op, issued, request.latency.map(|latency| issued + latency), &args)
    }

    fn learn(&mut self, known: &Metadata) {
        self.tracks.learn(&known.devices);
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.tracks.output().checkpoint(Vec::new())
    }

    fn finish(self: Box<Self>, _: &Metadata) -> Result<ConversionLoss> {
        TraceWriter::finish(*self, "Perfetto")
    }
}

impl Writer<IoResult> for TraceWriter {
    fn write(&mut self, row: &IoResult) -> Result<()> {
        let mut args = Args::default();
        args.number(Arg::Request, row.request).number(Arg::OffsetBytes, row.sector.bytes());
        args.number(Arg::Bytes, row.sectors.bytes()).signed(Arg::ScheduledNs, row.scheduled.0);
        if row.iteration > 0 {
            args.number(Arg::Iteration, row.iteration.into());
        }
        if let Some(delay) = row.delay() {
            args.signed(Arg::DelayNs, delay.0).text(Arg::DelayReason, row.delay_reason.name());
            args.number(Arg::InFlight, row.in_flight.into()).number(Arg::Waiting, row.waiting.into());
        }
        if row.pushed_back {
            args.number(Arg::PushedBack, 1);
        }
        if row.outcome != Outcome::Ok {
            args.text(Arg::Outcome, row.outcome.name());
        }
        if row.errno != 0 {
            args.signed(Arg::Errno, row.errno.into());
        }
        if let Some(stream) = row.stream {
            args.number(Arg::Stream, stream.into());
        }
        if let Some(cause) = row.cause {
            args.number(Arg::Cause, cause);
        }
        // A request that was never issued, or never completed, is an instant.
        let start = row.issued.unwrap_or(row.scheduled);
        self.put(row.device.0, row.op, start, row.completed.filter(|_| row.issued.is_some()), &args)
    }

    fn learn(&mut self, known: &Metadata) {
        self.tracks.learn(&known.devices);
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.tracks.output().checkpoint(Vec::new())
    }

    fn finish(self: Box<Self>, _: &Metadata) -> Result<ConversionLoss> {
        TraceWriter::finish(*self, "Perfetto")
    }
}
