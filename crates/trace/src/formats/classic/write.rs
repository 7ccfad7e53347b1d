//! Writes loads and results.

use std::io::Write;

use crate::error::Result;
use crate::formats::support::losses::{Losses, Property, lost_properties};
use crate::io::output::Output;
use crate::io::stream::{ConversionLoss, Writer};
use crate::model::io_result::{IoResult, Outcome};
use crate::model::metadata::Metadata;
use crate::model::request::{Op, Request};
use crate::model::run_info::RunStatistics;
use crate::model::units::Nanos;
use crate::text::human;

use super::row::{self, Columns, Kind};

const LOAD_COLUMNS: &str = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n";
const RUN_COLUMNS: &str = "orig_start ; sector; length ; op ;  replay_delay; replay_duration\n";

/// Properties of a load or run that the format does not store.
const UNSUPPORTED: [Property; 4] = [Property::Epoch, Property::Names, Property::Sizes, Property::RequestTime];

/// Counts of rows of a run that lost something.
#[derive(Default)]
struct RunLosses {
    incomplete: u64,
    /// Left out because they were scheduled before time zero, although they completed.
    before_zero: u64,
    outcomes: u64,
    wrapped: u64,
}

impl RunLosses {
    fn sentences(&self) -> Vec<String> {
        [
            (self.incomplete, "rows without a completion were left out"),
            (self.before_zero, "rows before time zero were left out"),
            (self.outcomes, "rows lost their outcome (short, error, corrupt)"),
            (self.wrapped, "rows lost their sector in the load; the sector on the target is kept"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("the format classic cannot hold everything: {}", human::agreed(count, what)))
        .collect()
    }
}

pub fn create_load(mut output: Output, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    write_preamble(&mut output, known, LOAD_COLUMNS)?;
    Ok(Box::new(LoadWriter { output, line: Vec::with_capacity(128), losses: Losses::default() }))
}

pub fn create_run(mut output: Output, known: &Metadata) -> Result<Box<dyn Writer<IoResult>>> {
    write_preamble(&mut output, known, RUN_COLUMNS)?;
    let line = Vec::with_capacity(128);
    Ok(Box::new(RunWriter {
        output,
        line,
        losses: Losses::default(),
        run_losses: RunLosses::default(),
        written: Metadata::new(known.kind, "classic"),
    }))
}

/// Writes the text in front of the rows. Lines that a reader would not take as text become comments.
fn write_preamble(output: &mut Output, known: &Metadata, columns: &str) -> Result<()> {
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
    text.push_str(columns);
    output.write_all(text.as_bytes()).map_err(|e| output.error(e))
}

struct LoadWriter {
    output: Output,
    line: Vec<u8>,
    losses: Losses,
}

impl Writer<Request> for LoadWriter {
    fn write(&mut self, request: &Request) -> Result<()> {
        let Some(op) = letter(request.op) else {
            self.losses.unsupported_ops += 1;
            return Ok(());
        };
        let Some(at) = self.losses.time(request.at) else { return Ok(()) };
        self.losses.device(request).flags(request.flags).times(request).process(request);
        self.line.clear();
        put_row(&mut self.line, Nanos(at as i64), request.sector.0, request.sectors.0, op, Nanos::ZERO, Nanos::ZERO);
        self.output.write_all(&self.line).map_err(|e| self.output.error(e))
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.output.checkpoint(Vec::new())
    }

    fn finish(self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        let mut loss = self.losses.conversion_loss("classic", metadata);
        loss.warnings.extend(lost_properties("classic", &UNSUPPORTED, metadata));
        self.output.finish()?;
        Ok(loss)
    }
}

struct RunWriter {
    output: Output,
    line: Vec<u8>,
    losses: Losses,
    run_losses: RunLosses,
    written: Metadata,
}

impl Writer<IoResult> for RunWriter {
    fn write(&mut self, record: &IoResult) -> Result<()> {
        let Some(op) = letter(record.op) else {
            self.losses.unsupported_ops += 1;
            return Ok(());
        };
        let (Some(delay), Some(latency)) = (record.delay(), record.latency()) else {
            self.run_losses.incomplete += 1;
            return Ok(());
        };
        if record.scheduled.0 < 0 {
            self.run_losses.before_zero += 1;
            return Ok(());
        }
        self.losses.other_devices += u64::from(record.device.0 > 0);
        self.losses.flags(record.flags);
        self.run_losses.outcomes += u64::from(record.outcome != Outcome::Ok);
        self.run_losses.wrapped += u64::from(record.source_sector != record.sector);
        let op = if record.pushed_back { op.to_ascii_lowercase() } else { op };
        self.line.clear();
        put_row(&mut self.line, record.scheduled, record.sector.0, record.sectors.0, op, delay, latency);
        self.written.count_record(record);
        self.output.write_all(&self.line).map_err(|e| self.output.error(e))
    }

    fn checkpoint(&mut self, _: &Metadata) -> Result<()> {
        self.output.checkpoint(Vec::new())
    }

    fn finish(mut self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        let statistics = statistics(metadata, &self.written, self.losses.unsupported_ops + self.run_losses.before_zero);
        self.output.write_all(statistics.as_bytes()).map_err(|e| self.output.error(e))?;
        // Not a loss: the last line says whether the run was cut short.
        let mut loss = self.losses.conversion_loss("classic", &Metadata { complete: true, ..metadata.clone() });
        loss.rows += self.run_losses.incomplete + self.run_losses.before_zero;
        loss.warnings.splice(0..0, self.run_losses.sentences());
        loss.warnings.extend(lost_properties("classic", &UNSUPPORTED, metadata));
        self.output.finish()?;
        Ok(loss)
    }
}

/// The closing statistics, as printed by blkreplay. Without the last line, a reader takes the result as cut short. Requests
/// left out because of the format are not counted: a reader would take them for requests that never completed.
fn statistics(metadata: &Metadata, written: &Metadata, left_out: u64) -> String {
    let run = metadata.run.as_ref();
    let statistics = run.and_then(|run| run.statistics.known());
    let number = |of: fn(&RunStatistics) -> Option<u64>| statistics.and_then(of).unwrap_or(0);
    let target = run.and_then(|run| run.target.known());
    let path = target.and_then(|target| target.path.text()).unwrap_or("-");
    let sectors = target.and_then(|target| target.sectors.value());
    let rows = &written.counts;
    let mut text = String::from("--------------------------------------\n");
    for (name, value) in [
        ("# total     requests          ", number(RunStatistics::requests).saturating_sub(left_out).max(rows.requests)),
        ("# completed requests          ", rows.requests),
        ("# write     requests          ", rows.writes),
        ("# dropped   requests          ", number(RunStatistics::dropped)),
        ("# pushback  requests          ", number(RunStatistics::pushed_back)),
        ("# ordered   requests (waits)  ", number(RunStatistics::ordered_waits)),
        ("# verify errors during replay ", number(RunStatistics::verify_errors)),
    ] {
        text.push_str(&format!("{name}: {value:>6}\n"));
    }
    let highest = metadata.span.max_end_sector;
    if let Some(sectors) = sectors.filter(|&s| s > 0) {
        text.push_str(&format!("size of device:      {sectors:>12} blocks ({} kB)\n", sectors / 2));
        text.push_str(&format!("max block# occurred: {highest:>12} blocks ({} kB)\n", highest / 2));
        text.push_str(&format!("wraparound factor: {:>8.3}\n", highest as f64 / sectors as f64));
    }
    let end = if metadata.complete { "ended at an unknown time" } else { "was cut short" };
    text.push_str(&format!("iosonar on {} {end}\n", path.replace('\n', " ")));
    text
}

fn letter(op: Op) -> Option<u8> {
    match op {
        Op::Read => Some(b'R'),
        Op::Write => Some(b'W'),
        Op::Flush | Op::Discard | Op::WriteZeroes => None,
    }
}

/// Appends `%4u.%09u ; %10u ; %3u ; %c ; %3u.%09u ; %3u.%09u`.
fn put_row(line: &mut Vec<u8>, at: Nanos, sector: u64, sectors: u64, op: u8, delay: Nanos, duration: Nanos) {
    put_seconds(line, at, 4);
    line.extend_from_slice(b" ; ");
    put_number(line, sector, 10);
    line.extend_from_slice(b" ; ");
    put_number(line, sectors, 3);
    line.extend_from_slice(&[b' ', b';', b' ', op, b' ', b';', b' ']);
    put_seconds(line, delay, 3);
    line.extend_from_slice(b" ; ");
    put_seconds(line, duration, 3);
    line.push(b'\n');
}

fn put_seconds(line: &mut Vec<u8>, time: Nanos, width: usize) {
    let ns = time.0.unsigned_abs();
    if time.0 < 0 {
        line.push(b'-');
    }
    put_number(line, ns / 1_000_000_000, width);
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
