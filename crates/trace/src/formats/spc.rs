//! Traces in the format of the Storage Performance Council, as in the UMass Trace Repository:
//! `ASU,LBA,Size,Opcode,Timestamp`.
//!
//! Positions are blocks of 512 bytes, sizes are bytes, times are seconds since the start; the opcode is R or W in any case.
//! Source: the SPC trace file format specification, revision 1.0.1.

use std::io::Write;

use crate::error::Result;
use crate::formats::format::{Format, TestedWith};
use crate::formats::support::csv::{Column, Dialect, Unit};
use crate::formats::support::losses::{Losses, Property, lost_properties};
use crate::formats::support::numbering::Names;
use crate::io::output::Output;
use crate::io::stream::{ConversionLoss, Writer};
use crate::model::metadata::Metadata;
use crate::model::request::{Op, Request};
use crate::rows::Zero;
use crate::text::number::whole;

/// The entry in [`FORMATS`](super::FORMATS).
pub const FORMAT: Format = Format {
    title: "SPC trace, as of UMass (CSV)",
    tested_with: TestedWith::PublishedLines,
    extensions: &[".spc"],
    recognise: |head| DIALECT.recognises(head),
    open: |input, _| DIALECT.open(input),
    create_load: Some(create_load),
    ..Format::named("spc")
};

static DIALECT: Dialect = Dialect {
    name: "spc",
    heading: "#",
    columns: &[
        Column::DeviceNumber,
        Column::Offset(Unit::Sectors),
        Column::Length(Unit::Bytes),
        Column::Operation("R", "W"),
        Column::Time(9),
    ],
    zero: Zero::TraceStart,
    earliest: i64::MIN,
};

/// Properties of a load that the format does not store.
const UNSUPPORTED: [Property; 5] =
    [Property::Preamble, Property::Epoch, Property::Sizes, Property::RequestTime, Property::Losses];

fn create_load(output: Output, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    // The specification has no upper limit of the number.
    let units = Names::new(|name| whole(name.as_bytes()).ok(), |number| number as u64, &known.devices);
    Ok(Box::new(SpcWriter { output, units, losses: Losses::default() }))
}

struct SpcWriter {
    output: Output,
    /// Application-specific units (ASU), the devices of the format.
    units: Names<u64>,
    losses: Losses,
}

impl Writer<Request> for SpcWriter {
    fn write(&mut self, request: &Request) -> Result<()> {
        let Some(at) = self.losses.time(request.at) else { return Ok(()) };
        let opcode = match request.op {
            Op::Read => 'R',
            Op::Write => 'W',
            _ => {
                self.losses.unsupported_ops += 1;
                return Ok(());
            }
        };
        self.losses.flags(request.flags).process(request).times(request);
        let (secs, ns) = (at / 1_000_000_000, at % 1_000_000_000);
        let asu = self.units.used(request.device.0.into());
        let (lba, size) = (request.sector.0, request.sectors.bytes());
        writeln!(self.output, "{asu},{lba},{size},{opcode},{secs}.{ns:09}").map_err(|e| self.output.error(e))
    }

    fn learn(&mut self, known: &Metadata) {
        self.units.learn(&known.devices);
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.output.checkpoint(Vec::new())
    }

    fn finish(self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        let mut loss = self.losses.conversion_loss(&self.output, "SPC")?;
        loss.warnings.extend(lost_properties("SPC", &UNSUPPORTED, metadata));
        loss.warnings.extend(self.units.describe_renamed("the format SPC has numbers for devices, not names"));
        self.output.finish()?;
        Ok(loss)
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::support::check::{about, load, recognised_as, written};
    use crate::model::request::{DeviceId, Op, Request};
    use crate::model::units::{Nanos, Sector, Sectors};

    #[test]
    fn positions_are_sectors_and_sizes_bytes() {
        let trace = b"0,20941264,8192,W,0.551706\n1,20939840,8192,w,0.554041\n0,7,512,r,1.5,extra\n";
        let (rows, about) = load("spc", trace);
        assert_eq!(recognised_as(trace), "spc");
        assert_eq!((rows[0].at.0, rows[0].op, rows[0].sector.0), (551_706_000, Op::Write, 20_941_264));
        assert_eq!((rows[1].sectors.0, rows[1].device.0), (16, 1));
        assert_eq!((rows[2].op, about.counts.bad_lines), (Op::Read, 0));
    }

    #[test]
    fn reads_and_writes_are_written_and_other_losses_reported() {
        let request = Request::new(Nanos(1_500_000_001), Op::Write, Sector(8), Sectors(16));
        let rows = [
            Request { device: DeviceId(1), ..request },
            request,
            Request { op: Op::Flush, ..request },
            Request { latency: Some(Nanos(5)), ..request },
        ];
        let (text, said) = written("spc", &rows, &about(&["", ""]));
        assert_eq!(text, b"1,8,8192,W,1.500000001\n0,8,8192,W,1.500000001\n0,8,8192,W,1.500000001\n");
        assert_eq!(said.len(), 2, "{said:?}");
        let (back, _) = load("spc", &text);
        // The reader numbers devices as they appear.
        assert_eq!((back[0].device.0, back[1].device.0, back[1].at), (0, 1, request.at));
    }
}
