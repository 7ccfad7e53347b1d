//! Reads a result: rows in the order of completion, and messages of the replayer between them.

use crate::error::{Error, Result};
use crate::io::input::Input;
use crate::io::stream::Reader;
use crate::model::io_result::{IoResult, Outcome};
use crate::model::metadata::{Kind as TableKind, Metadata};
use crate::model::request::{Op, Request};
use crate::model::run_info::{Field, Machine, OpenMap, OptionValue, RunInfo, RunStatistics, RunTarget};
use crate::model::units::{Nanos, Sector, Sectors};
use crate::rows::{excerpt, excerpt_up_to, metadata_of, note_damage};
use crate::text::human;
use crate::text::lines::{LineEnd, Lines};

use super::load::bad_line;
use super::preamble::{NAME, Preamble};
use super::row::{self, Columns, Kind, Row};

pub struct RunReader {
    lines: Lines<Input>,
    metadata: Metadata,
    preamble: Option<Preamble>,
    first: Option<Row>,
    messages: Messages,
    /// Whether the notices of the end were added.
    concluded: bool,
}

impl RunReader {
    /// Reads up to the first row, so that the metadata has the messages before it from the start.
    pub fn new(input: Input) -> Result<Self> {
        let metadata = Metadata { kind: TableKind::Replay, ..metadata_of(&input, NAME) };
        let mut reader = Self {
            lines: Lines::new(input),
            metadata,
            preamble: Some(Preamble::default()),
            first: None,
            messages: Messages::default(),
            concluded: false,
        };
        reader.first = reader.advance()?;
        reader.messages.store(&mut reader.metadata);
        Ok(reader)
    }

    fn advance(&mut self) -> Result<Option<Row>> {
        loop {
            let line = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(e) => return Err(Error::io(self.lines.source().path(), e)),
            };
            let kind = row::classify(line.text, Columns::Six);
            if line.end == LineEnd::EndOfFile && kind != Kind::Nothing {
                // A row cannot be used, because its last column may lack digits.
                self.metadata.notice(format!("line {} has no newline: the file was cut short there", line.number));
                self.messages.cut_short = true;
                break;
            }
            match kind {
                Kind::Row(row) => {
                    self.end_preamble();
                    return Ok(Some(row));
                }
                Kind::Bad(problem) => bad_line(&mut self.metadata, line.number, &excerpt(line.text), problem),
                Kind::LoadColumns | Kind::ResultColumns => self.end_preamble(),
                Kind::Nothing | Kind::Text => {
                    let is_message = self.messages.parse(line.text);
                    match &mut self.preamble {
                        Some(preamble) if !is_message => preamble.push(line.text),
                        _ => {}
                    }
                }
            }
        }
        if !std::mem::replace(&mut self.concluded, true) {
            self.end_preamble();
            note_damage(self.lines.source(), &mut self.metadata);
            self.messages.conclude(&mut self.metadata);
        }
        Ok(None)
    }

    fn end_preamble(&mut self) {
        if let Some(preamble) = self.preamble.take() {
            self.metadata.source.preamble = preamble.finish();
        }
    }
}

impl Reader<IoResult> for RunReader {
    fn next(&mut self) -> Result<Option<IoResult>> {
        let next = match self.first.take() {
            Some(first) => Some(first),
            None => self.advance()?,
        };
        let Some(row) = next else { return Ok(None) };
        let record = record(&row, self.metadata.counts.requests);
        self.metadata.count_record(&record);
        Ok(Some(record))
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        self.lines.source().progress()
    }
}

fn record(row: &Row, number: u64) -> IoResult {
    let op = if row.op.eq_ignore_ascii_case(&b'R') { Op::Read } else { Op::Write };
    let request = Request::new(Nanos(row.start), op, Sector(row.sector), Sectors(row.sectors));
    let issued = request.at + Nanos(row.delay);
    IoResult {
        issued: Some(issued),
        completed: Some(issued + Nanos(row.duration)),
        bytes_done: request.sectors.bytes(),
        pushed_back: row.op.is_ascii_lowercase(),
        outcome: Outcome::Ok,
        ..IoResult::of(&request, number)
    }
}

/// The messages of the replayer: options, warnings, closing statistics.
#[derive(Default)]
struct Messages {
    options: OpenMap,
    target: RunTarget,
    machine: Machine,
    statistics: OpenMap,
    warnings: Vec<String>,
    fake: Option<String>,
    bad_input: u64,
    /// Whether the previous line was the first of a message about a bad line.
    in_bad_input: bool,
    ended: bool,
    cut_short: bool,
}

/// The lines of the closing statistics, without `#` and padding, and the keys for them.
const STATISTICS: &[(&str, &str)] = &[
    ("total input lines", "input_lines"),
    ("total requests", "requests"),
    ("completed requests", "completed"),
    ("write requests", "writes"),
    ("dropped requests", "dropped"),
    ("pushback requests", "pushed_back"),
    ("ordered requests (waits)", "ordered_waits"),
    ("verify errors during replay", "verify_errors"),
    ("conflict_mode", "conflict_mode"),
    ("strong_mode", "strong_mode"),
    ("verify_mode", "verify_mode"),
    ("max_submitted", "max_submitted"),
    ("max_pushback", "max_pushed_back"),
    ("size of device", "device_sectors"),
    ("max block# occurred", "max_end_sector"),
    ("wraparound factor", "wrap_factor"),
];

const MAX_WARNINGS: usize = 50;

impl Messages {
    /// Parses a line that is not a row; false if it is not a message either.
    fn parse(&mut self, line: &[u8]) -> bool {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if std::mem::take(&mut self.in_bad_input) && text == "'" {
            return true;
        }
        if text.contains("FAKE RESULT") {
            self.fake = Some(text.to_owned());
            return true;
        }
        if let Some(info) = text.strip_prefix("INFO:") {
            self.parse_info(info.trim());
        } else if text.starts_with("ERROR: bad input") {
            // The quoted line has a newline, so the closing quote is on a line of its own.
            (self.bad_input, self.in_bad_input) = (self.bad_input + 1, true);
        } else if ["WARN", "ERROR", "VERIFY"].iter().any(|word| text.starts_with(word)) {
            if self.warnings.len() < MAX_WARNINGS {
                self.warnings.push(excerpt_up_to(line, 300));
            }
        } else if let Some((target, when)) = target_and_time(text, " started at ") {
            self.target.path = target.to_owned().into();
            self.machine.started_local = when.to_owned().into();
        } else if target_and_time(text, " ended at ").is_some() {
            self.ended = true;
        } else {
            return self.parse_statistic(text);
        }
        true
    }

    fn parse_info(&mut self, info: &str) {
        let Some((name, value)) = info.split_once('=') else { return };
        if name == "device" {
            let sectors = value.split_once("has blocks=").and_then(|(_, n)| n.split_whitespace().next()?.parse().ok());
            if let Some(sectors) = sectors {
                self.target.sectors = Field::Known(sectors);
            }
        } else if self.options.len() < MAX_WARNINGS {
            self.options.insert(name.trim(), number_or_text(value.trim()));
        }
    }

    fn parse_statistic(&mut self, text: &str) -> bool {
        let Some((name, value)) = text.rsplit_once(':') else { return false };
        let name = name.trim_start_matches('#').split_whitespace().collect::<Vec<_>>().join(" ");
        let Some((_, key)) = STATISTICS.iter().find(|(label, _)| *label == name) else { return false };
        let value = value.split_whitespace().next().unwrap_or_default();
        self.statistics.insert(key, number_or_text(value));
        true
    }

    /// Stores the messages so far in the metadata.
    fn store(&self, metadata: &mut Metadata) {
        metadata.run = Some(Box::new(RunInfo {
            load: None.into(),
            options: self.options.clone().into(),
            target: self.target.clone().into(),
            machine: self.machine.clone().into(),
            fake: self.fake_mark().into(),
            warnings: self.warnings.clone().into(),
            statistics: RunStatistics::Part(self.statistics.clone()).into(),
            ..RunInfo::default()
        }));
    }

    fn fake_mark(&self) -> Option<String> {
        let is_set = |name: &str| self.options.get(name).number().is_some_and(|x| x != 0.0);
        self.fake.clone().or_else(|| {
            ["dry_run", "fake_io", "simulate_io"]
                .into_iter()
                .find(|name| is_set(name))
                .map(|name| format!("FAKE RESULT: replayed with {name}"))
        })
    }

    /// At the end of the file, checks whether it is complete.
    fn conclude(&mut self, metadata: &mut Metadata) {
        let rows = metadata.counts.requests;
        let count = |key: &str| self.statistics.get(key).integer::<u64>();
        if !self.ended {
            metadata.notice("the closing statistics are missing: the result was cut short");
            self.cut_short = true;
        } else if let Some(completed) = count("completed").filter(|&completed| completed != rows) {
            metadata.notice(format!(
                "{} requests were completed, but the result has {} rows",
                human::count(completed),
                human::count(rows)
            ));
            self.cut_short = true;
        }
        metadata.complete &= !self.cut_short;
        if let (Some(requests), Some(completed)) = (count("requests"), count("completed"))
            && requests > completed
        {
            let lost = requests - completed;
            metadata.counts.unmatched = lost;
            metadata.notice(format!(
                "{} of {} requests never completed and have no row",
                human::count(lost),
                human::count(requests)
            ));
        }
        if self.bad_input > 0 {
            metadata.notice(format!("the replayer reported {} bad lines in its input", human::count(self.bad_input)));
        }
        for warning in &self.warnings {
            metadata.notice(format!("message of the replayer: {warning}"));
        }
        self.store(metadata);
    }
}

/// Parses `blkreplay on TARGET started at WHEN`; `verb` is ` started at ` or ` ended at `.
fn target_and_time<'a>(text: &'a str, verb: &str) -> Option<(&'a str, &'a str)> {
    let (program, when) = text.split_once(verb)?;
    let (_, target) = program.split_once(" on ")?;
    Some((target, when))
}

fn number_or_text(value: &str) -> OptionValue {
    if let Ok(whole) = value.parse::<u64>() {
        return whole.into();
    }
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => number.into(),
        _ => value.into(),
    }
}
