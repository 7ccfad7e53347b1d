//! Writes the text that blkparse would print: `Q`, `D` and `C` of each request, as far as their times are known.

use std::borrow::Cow;
use std::io::Write;

use crate::error::Result;
use crate::events::Action;
use crate::formats::support::kernel_numbers;
use crate::formats::support::losses::{Losses, Property, lost_properties};
use crate::formats::support::numbering::Names;
use crate::formats::support::request_events::RequestEvents;
use crate::formats::tracepoints::is_device;
use crate::io::output::Output;
use crate::io::stream::{ConversionLoss, Writer};
use crate::model::metadata::Metadata;
use crate::model::request::{Op, Request};
use crate::model::rwbs;
use crate::text::human;

/// Properties of a load that the format does not store.
const UNSUPPORTED: [Property; 4] = [Property::Preamble, Property::Epoch, Property::Sizes, Property::Losses];

/// Creates a load.
pub fn create_load(output: Output, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    let convert = |name: &str| match is_device(name.as_bytes()) {
        Ok(_) => Some(name.to_owned()),
        Err(_) => kernel_numbers::text_of(name),
    };
    let names = Names::new(convert, |number| format!("259,{number}"), &known.devices);
    Ok(Box::new(BlkparseWriter {
        output,
        names,
        unknown_processes: 0,
        control_characters: 0,
        sequence: 0,
        pending: RequestEvents::new(known.request_time),
        losses: Losses::default(),
    }))
}

struct BlkparseWriter {
    output: Output,
    names: Names<String>,
    /// Requests without a pid.
    unknown_processes: u64,
    /// Requests of processes whose names contain control characters.
    control_characters: u64,
    sequence: u64,
    pending: RequestEvents,
    losses: Losses,
}

impl BlkparseWriter {
    fn put(&mut self, event: Option<(u64, Action, Request)>) -> Result<bool> {
        let Some((at, action, request)) = event else { return Ok(false) };
        self.sequence += 1;
        let device = self.names.used(request.device.0.into());
        let (secs, ns, sequence, pid) =
            (at / 1_000_000_000, at % 1_000_000_000, self.sequence, request.pid.unwrap_or(0));
        let letters = rwbs::letters(request.op, request.flags);
        let letter = action.letter();
        let comm = request.comm;
        // As blkparse prints it: a flush has no position, and a completion has an error instead of the process. Other
        // requests of length zero keep their position, because a reader needs it.
        let range = match (request.op, request.sectors.0, action) {
            (Op::Flush, 0, Action::Complete) => "0 ".to_owned(),
            (Op::Flush, 0, _) => String::new(),
            (_, sectors, _) => format!("{} + {sectors} ", request.sector.0),
        };
        let tail = if action == Action::Complete { Cow::Borrowed("0") } else { in_one_line(comm.as_str()) };
        writeln!(
            self.output,
            "{device:>7} {cpu:>3} {sequence:>8} {secs:>5}.{ns:09} {pid:>5}  {letter} {letters:>3} {range}[{tail}]",
            cpu = 0
        )
        .map_err(|e| self.output.error(e))?;
        Ok(true)
    }
}

/// The name of a process, with `?` for newlines and other control characters.
fn in_one_line(name: &str) -> Cow<'_, str> {
    if name.contains(char::is_control) { name.replace(char::is_control, "?").into() } else { name.into() }
}

impl Writer<Request> for BlkparseWriter {
    fn write(&mut self, request: &Request) -> Result<()> {
        let Some(at) = self.losses.time(request.at) else { return Ok(()) };
        self.unknown_processes += u64::from(request.pid.is_none());
        self.control_characters += u64::from(matches!(in_one_line(request.comm.as_str()), Cow::Owned(_)));
        self.pending.push(at, request);
        while let event @ Some(_) = self.pending.pop_until(at) {
            self.put(event)?;
        }
        Ok(())
    }

    fn learn(&mut self, known: &Metadata) {
        self.names.learn(&known.devices);
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.output.checkpoint(Vec::new())
    }

    fn finish(mut self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        while let event @ Some(_) = self.pending.pop_until(u64::MAX) {
            self.put(event)?;
        }
        let mut loss = self.losses.conversion_loss(&self.output, "blkparse")?;
        loss.warnings.extend(lost_properties("blkparse", &UNSUPPORTED, metadata));
        loss.warnings.extend(self.pending.warnings("blkparse"));
        loss.warnings.extend(self.names.describe_all("the format blkparse identifies devices by unique numbers"));
        if self.unknown_processes > 0 {
            let what = human::agreed(self.unknown_processes, "requests of unknown processes have pid 0");
            loss.warnings.push(format!("the format blkparse needs a pid: {what}"));
        }
        if self.control_characters > 0 {
            let what = "requests are of processes whose names contain control characters, which became ?";
            let what = human::agreed(self.control_characters, what);
            loss.warnings.push(format!("the format blkparse cannot hold everything: {what}"));
        }
        self.output.finish()?;
        Ok(loss)
    }
}
