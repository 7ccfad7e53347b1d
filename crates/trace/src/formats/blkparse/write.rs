//! Writes what blkparse would have: a `Q` for each request, and `D` and `C` where its times are known;
//! without a `Q` where only the time of its issue is.

use std::borrow::Cow;
use std::io::Write;

use crate::error::Result;
use crate::events::Action;
use crate::formats::support::losses::{Losses, Whole, lost_of_whole};
use crate::formats::support::numbering::Names;
use crate::formats::support::unfold::Unfolded;
use crate::formats::tracepoints::is_device;
use crate::io::output::Output;
use crate::io::stream::{ConversionLoss, Writer};
use crate::model::metadata::{Device, Metadata};
use crate::model::request::{Op, Request};
use crate::model::rwbs;

/// What is known of a load and has no place here.
const HAS_NO: [Whole; 3] = [Whole::Preamble, Whole::Epoch, Whole::Sizes];

/// Begins a text.
pub fn create_load(output: Output, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    let own = |name: &str| is_device(name.as_bytes()).is_ok().then(|| name.to_owned());
    let names = Names::new(own, |place| format!("259,{place}"), &known.devices);
    Ok(Box::new(BlkparseWriter {
        output,
        names,
        unknown_processes: 0,
        control: 0,
        sequence: 0,
        pending: Unfolded::new(known.request_time),
        losses: Losses::default(),
    }))
}

struct BlkparseWriter {
    output: Output,
    names: Names<String>,
    /// Requests of which it is not known who asked.
    unknown_processes: u64,
    /// Requests of processes with characters in their names that no text of lines can hold.
    control: u64,
    sequence: u64,
    pending: Unfolded,
    losses: Losses,
}

impl BlkparseWriter {
    fn put(&mut self, event: Option<(u64, Action, Request)>) -> Result<bool> {
        let Some((at, action, request)) = event else { return Ok(false) };
        self.sequence += 1;
        let device = self.names.of(request.device.0.into());
        let (secs, ns, sequence, pid) =
            (at / 1_000_000_000, at % 1_000_000_000, self.sequence, request.pid.unwrap_or(0));
        let letters = rwbs::letters(request.op, request.flags);
        let letter = action.letter();
        let comm = request.comm;
        // As blkparse does: no place for a flush, and an error in place of the process at the completion. What else moves
        // nothing would be no request without its place.
        let place = match (request.op, request.sectors.0, action) {
            (Op::Flush, 0, Action::Complete) => "0 ".to_owned(),
            (Op::Flush, 0, _) => String::new(),
            (_, sectors, _) => format!("{} + {sectors} ", request.sector.0),
        };
        let tail = if action == Action::Complete { Cow::Borrowed("0") } else { in_one_line(comm.as_str()) };
        writeln!(
            self.output,
            "{device:>7} {cpu:>3} {sequence:>8} {secs:>5}.{ns:09} {pid:>5}  {letter} {letters:>3} {place}[{tail}]",
            cpu = 0
        )
        .map_err(|e| self.output.error(e))?;
        Ok(true)
    }
}

/// The name of a process, which may be any: without the ends of lines, and what else is no character to be seen.
fn in_one_line(name: &str) -> Cow<'_, str> {
    if name.contains(char::is_control) { name.replace(char::is_control, "?").into() } else { name.into() }
}

impl Writer<Request> for BlkparseWriter {
    fn write(&mut self, request: &Request) -> Result<()> {
        let Some(at) = self.losses.time(request.at) else { return Ok(()) };
        self.unknown_processes += u64::from(request.pid.is_none());
        self.control += u64::from(matches!(in_one_line(request.comm.as_str()), Cow::Owned(_)));
        self.pending.push(at, request);
        while let event @ Some(_) = self.pending.before(at) {
            self.put(event)?;
        }
        Ok(())
    }

    fn learn_devices(&mut self, new: &[Device]) {
        self.names.learn(new);
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.output.checkpoint(Vec::new())
    }

    fn finish(mut self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        while let event @ Some(_) = self.pending.before(u64::MAX) {
            self.put(event)?;
        }
        let mut loss = self.losses.conversion_loss("blkparse", metadata);
        loss.warnings.extend(lost_of_whole("blkparse", &HAS_NO, metadata));
        loss.warnings.extend(self.pending.warnings("blkparse"));
        loss.warnings.extend(self.names.describe_all("blkparse knows devices by number, each by one of its own"));
        if self.unknown_processes > 0 {
            let count = self.unknown_processes;
            loss.warnings
                .push(format!("blkparse knows processes by number: {count} requests of an unknown one are of 0"));
        }
        if self.control > 0 {
            let count = self.control;
            loss.warnings.push(format!(
                "the format blkparse can't hold everything: {count} requests are of processes whose names have control \
                 characters, which are ? now"
            ));
        }
        self.output.finish()?;
        Ok(loss)
    }
}
