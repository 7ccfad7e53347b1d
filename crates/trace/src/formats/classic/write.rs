//! Writes loads.

use std::io::Write;

use crate::error::Result;
use crate::formats::support::losses::{Losses, Property, lost_properties};
use crate::io::output::Output;
use crate::io::stream::{ConversionLoss, Writer};
use crate::model::metadata::{Metadata, RequestTime};
use crate::model::request::{Op, Request};
use crate::model::units::Nanos;

use super::load_comment;
use super::row::{self, Columns, Kind, Row};

const COLUMNS: &str = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n";
/// The same for a load whose first row has a queueing time or a latency.
const COLUMNS_WITH_TIMES: &str = "start ; sector; length ; op ;  replay_delay; replay_duration\n";

/// Properties of a load that the format does not store.
const UNSUPPORTED: [Property; 4] = [Property::Epoch, Property::Names, Property::Sizes, Property::RequestTime];

pub fn create_load(mut output: Output, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    output.write_all(preamble(known).as_bytes()).map_err(|e| output.error(e))?;
    let is_queued_before = known.request_time == RequestTime::Issued;
    let line = Vec::with_capacity(128);
    Ok(Box::new(LoadWriter { output, line, has_columns: false, is_queued_before, losses: Losses::default() }))
}

/// The text in front of the rows. Lines that a reader would not take as text become comments.
pub fn preamble(known: &Metadata) -> String {
    let mut text = String::new();
    for line in known.source.preamble.lines() {
        if !matches!(row::classify(line.as_bytes(), Columns::Four), Kind::Text | Kind::Nothing) {
            text.push_str("# ");
        }
        text.push_str(line);
        text.push('\n');
    }
    if text.is_empty() {
        let from = known.source.path.as_deref().unwrap_or("-").replace('\n', " ");
        text = format!("Converted by iosonar from '{from}' ({})\n\n", known.source.format);
    }
    let fake = known.run.as_ref().and_then(|run| run.fake.text());
    if let Some(fake) = fake.filter(|_| !text.contains("FAKE RESULT")) {
        text.insert_str(0, &format!("{}\n", fake.replace('\n', " ")));
    }
    text
}

struct LoadWriter {
    output: Output,
    line: Vec<u8>,
    /// Whether the line of column names was written.
    has_columns: bool,
    /// Whether queueing times lie before the times of the rows: then the format, where they lie after them, has no place for
    /// them.
    is_queued_before: bool,
    losses: Losses,
}

impl LoadWriter {
    /// Writes the line of column names once, before the first row.
    fn write_columns(&mut self, has_times: bool) -> Result<()> {
        if std::mem::replace(&mut self.has_columns, true) {
            return Ok(());
        }
        let columns = if has_times { COLUMNS_WITH_TIMES } else { COLUMNS };
        self.output.write_all(columns.as_bytes()).map_err(|e| self.output.error(e))
    }
}

impl Writer<Request> for LoadWriter {
    fn write(&mut self, request: &Request) -> Result<()> {
        let Some(at) = self.losses.time(request.at) else { return Ok(()) };
        let Some(op) = letter(request.op) else {
            self.losses.unsupported_ops += 1;
            return Ok(());
        };
        self.losses.device(request).flags(request.flags).process(request);
        let mut queued = request.queued;
        if self.is_queued_before {
            self.losses.times(&Request { latency: None, ..*request });
            queued = None;
        }
        // Zero is none.
        if request.latency == Some(Nanos::ZERO) {
            self.losses.times(request);
        }
        let [delay, duration] = [queued, request.latency].map(|time| time.map_or(0, |time| time.0.max(0)));
        self.write_columns(delay > 0 || duration > 0)?;
        self.line.clear();
        let (sector, sectors) = (request.sector.0, request.sectors.0);
        put_row(&mut self.line, &Row { start: at as i64, sector, sectors, op, delay, duration });
        self.line.push(b'\n');
        self.output.write_all(&self.line).map_err(|e| self.output.error(e))
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.output.checkpoint(Vec::new())
    }

    fn finish(mut self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        self.write_columns(false)?;
        let mut loss = self.losses.conversion_loss_or_none(&self.output, "classic")?;
        loss.warnings.extend(lost_properties("classic", &UNSUPPORTED, metadata));
        let lost = load_comment::line(metadata);
        self.output.write_all(lost.as_bytes()).map_err(|e| self.output.error(e))?;
        self.output.finish()?;
        Ok(loss)
    }
}

pub fn letter(op: Op) -> Option<u8> {
    match op {
        Op::Read => Some(b'R'),
        Op::Write => Some(b'W'),
        Op::Flush | Op::Discard | Op::WriteZeroes => None,
    }
}

/// Appends `%4u.%09u ; %10u ; %3u ; %c ; %3u.%09u ; %3u.%09u`, without a line end.
pub fn put_row(line: &mut Vec<u8>, row: &Row) {
    put_seconds(line, row.start, 4);
    line.extend_from_slice(b" ; ");
    put_number(line, row.sector, 10);
    line.extend_from_slice(b" ; ");
    put_number(line, row.sectors, 3);
    line.extend_from_slice(&[b' ', b';', b' ', row.op, b' ', b';', b' ']);
    put_seconds(line, row.delay, 3);
    line.extend_from_slice(b" ; ");
    put_seconds(line, row.duration, 3);
}

fn put_seconds(line: &mut Vec<u8>, signed_ns: i64, width: usize) {
    let ns = signed_ns.unsigned_abs();
    if signed_ns < 0 {
        line.push(b'-');
    }
    put_number(line, ns / 1_000_000_000, if signed_ns < 0 { 1 } else { width });
    let mut digits = [b'.'; 10];
    let mut rest = ns % 1_000_000_000;
    for digit in digits[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    line.extend_from_slice(&digits);
}

fn put_number(line: &mut Vec<u8>, mut value: u64, width: usize) {
    let mut digits = [b' '; 20];
    let mut from = digits.len();
    loop {
        from -= 1;
        digits[from] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[from.min(20 - width)..]);
}
