//! Reads a result: rows in the order of completion, messages of the replayer between them, and what iosonar adds in comments.

use crate::error::{Error, Result};
use crate::io::input::Input;
use crate::io::stream::Reader;
use crate::model::io_result::{DelayReason, IoResult, Outcome};
use crate::model::metadata::{Counts, Device, Kind as TableKind, Metadata};
use crate::model::request::{Op, Request};
use crate::model::row::{Footer as _, Row as _};
use crate::model::run_info::Field;
use crate::model::units::{Nanos, Sector, Sectors};
use crate::model::versions::FooterError;
use crate::rows::{excerpt, metadata_of, note_damage};
use crate::text::human;
use crate::text::lines::{Line, LineEnd, Lines};

use super::comments::{CommentMetadata, ROW};
use super::details::{self, UNREADABLE};
use super::load::bad_line;
use super::messages::Messages;
use super::preamble::{NAME, Preamble};
use super::row::{self, Columns, Kind, Problem, Row};

pub struct RunReader {
    lines: Lines<Input>,
    metadata: Metadata,
    preamble: Option<Preamble>,
    first: Option<IoResult>,
    messages: Messages,
    stated: CommentMetadata,
    /// Whether the file was found to be cut short.
    cut_short: bool,
    /// Whether the warnings of the end were added.
    concluded: bool,
}

impl RunReader {
    /// Reads up to the first row, so that the metadata has what is before it from the start.
    pub fn new(input: Input) -> Result<Self> {
        let metadata = Metadata { kind: TableKind::Replay, ..metadata_of(&input, NAME) };
        let mut reader = Self {
            lines: Lines::new(input),
            metadata,
            preamble: Some(Preamble::default()),
            first: None,
            messages: Messages::default(),
            stated: CommentMetadata::default(),
            cut_short: false,
            concluded: false,
        };
        reader.first = reader.advance()?;
        if reader.concluded {
            return Ok(reader);
        }
        match reader.usable(reader.stated.begin())? {
            Some(begin) => reader.replace_metadata(begin),
            None => reader.messages.store(&mut reader.metadata),
        }
        Ok(reader)
    }

    fn advance(&mut self) -> Result<Option<IoResult>> {
        loop {
            let line = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(e) => return Err(Error::io(self.lines.source().path(), e)),
            };
            let kind = row::classify(line.text, Columns::Six);
            if line.end == LineEnd::EndOfFile && kind != Kind::Nothing {
                // A row cannot be used, because its last column may lack digits.
                self.metadata.warning(format!("line {} has no newline: the file was cut short there", line.number));
                self.cut_short = true;
                break;
            }
            let number = self.metadata.counts.requests;
            let mut found = None;
            match kind {
                Kind::Row(row) => {
                    let mut record = plain_record(&row, number);
                    if row::details(line.text).is_some_and(|text| !details::apply_column(&mut record, text)) {
                        bad_row(&mut self.metadata, &line, UNREADABLE);
                        continue;
                    }
                    found = Some(record);
                }
                Kind::Comment(text) => match text.strip_prefix(ROW) {
                    Some(text) => {
                        found = details::parse_row(text);
                        if found.is_none() {
                            bad_row(&mut self.metadata, &line, UNREADABLE);
                        }
                    }
                    None => self.stated.take(text),
                },
                // Of a load in front of the result.
                Kind::Lost(_) => {}
                Kind::Bad(problem) => bad_row(&mut self.metadata, &line, problem),
                Kind::LoadColumns | Kind::ResultColumns => {
                    self.end_preamble();
                    continue;
                }
                Kind::Nothing | Kind::Text => {
                    let is_message = self.messages.parse(line.text);
                    match &mut self.preamble {
                        Some(preamble) if !is_message => preamble.push(line.text),
                        // What is no row has no columns.
                        None if !is_message && line.text.iter().filter(|&&byte| byte == b';').count() >= 3 => {
                            bad_row(&mut self.metadata, &line, Problem::Time);
                        }
                        _ => {}
                    }
                }
            }
            let Some(mut record) = found else { continue };
            let impossible = record.remove_impossible();
            if let Some(problem) = record.problem() {
                bad_row(&mut self.metadata, &line, problem);
                continue;
            }
            self.metadata.count_impossible(impossible);
            self.end_preamble();
            return Ok(Some(record));
        }
        if !std::mem::replace(&mut self.concluded, true) {
            self.end_preamble();
            self.conclude()?;
        }
        Ok(None)
    }

    fn end_preamble(&mut self) {
        if let Some(preamble) = self.preamble.take() {
            self.metadata.source.preamble = preamble.finish();
        }
    }

    /// Metadata of comments. Damaged metadata is reported; that of a later version is refused, as in a table.
    fn usable(&self, stated: Option<std::result::Result<Metadata, FooterError>>) -> Result<Option<Metadata>> {
        match stated {
            None | Some(Err(FooterError::Invalid(_))) => Ok(None),
            Some(Ok(metadata)) => Ok(Some(metadata)),
            Some(Err(error @ FooterError::TooNew(_))) => {
                Err(Error::format(self.lines.source().path(), error.to_string()))
            }
        }
    }

    /// Takes all but the totals of the rows from comments. Losses are those of the run and those of this file.
    fn replace_metadata(&mut self, stated: Metadata) {
        let of_file = std::mem::replace(&mut self.metadata, stated);
        let metadata = &mut self.metadata;
        let Counts { requests, reads, writes, others, .. } = of_file.counts;
        metadata.counts = Counts { requests, reads, writes, others, ..std::mem::take(&mut metadata.counts) };
        metadata.counts.add_losses(&of_file.counts);
        metadata.span = of_file.span;
        of_file.warnings.into_iter().for_each(|warning| metadata.warning(warning));
        if metadata.devices.is_empty() {
            metadata.devices.push(Device::default());
        }
    }

    /// At the end of the file, finds out whether it is complete.
    fn conclude(&mut self) -> Result<()> {
        self.metadata.complete = true;
        note_damage(self.lines.source(), &mut self.metadata);
        self.cut_short |= !self.metadata.complete;
        let stated_end = self.usable(self.stated.end())?;
        let Some(end) = stated_end else {
            if !self.stated.is_any() {
                self.messages.conclude(&mut self.metadata, self.cut_short);
                return Ok(());
            }
            self.metadata.warning(
                "the metadata after the last row is missing: the result was cut short, or its comments were changed",
            );
            self.metadata.complete = false;
            if self.metadata.run.is_none() {
                self.messages.store(&mut self.metadata);
            }
            return Ok(());
        };
        let (stated, rows) = (end.counts.requests, self.metadata.counts.requests);
        if !self.messages.has_last_line() {
            self.metadata.warning("the last line is missing: the result was cut short");
        }
        if stated != rows {
            let (stated, rows) = (human::count(stated), human::count(rows));
            self.metadata.warning(format!("the result has {rows} rows, but the run wrote {stated}"));
        }
        let is_whole = stated == rows && self.messages.has_last_line() && !self.cut_short;
        let is_complete = end.complete && is_whole;
        // The warnings and losses of the beginning are among those of the end.
        self.replace_metadata(end);
        self.metadata.complete = is_complete;
        if let Some(run) = self.metadata.run.as_mut().filter(|_| !is_whole) {
            // They count other rows.
            run.statistics = Field::Missing;
        }
        Ok(())
    }
}

impl Reader<IoResult> for RunReader {
    fn next(&mut self) -> Result<Option<IoResult>> {
        let next = match self.first.take() {
            Some(first) => Some(first),
            None => self.advance()?,
        };
        let Some(record) = next else { return Ok(None) };
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

/// Counts and reports a line that should be a row of the result.
fn bad_row(metadata: &mut Metadata, line: &Line<'_>, problem: impl std::fmt::Display) {
    metadata.counts.unreadable_rows += 1;
    bad_line(metadata, line.number, &excerpt(line.text), problem);
}

/// The record of a row of six columns, the `number`th of its file. Nothing in them says what delayed it.
pub fn plain_record(row: &Row, number: u64) -> IoResult {
    let op = if row.op.eq_ignore_ascii_case(&b'R') { Op::Read } else { Op::Write };
    let request = Request::new(Nanos(row.start), op, Sector(row.sector), Sectors(row.sectors));
    let issued = request.at + Nanos(row.delay);
    IoResult {
        issued: Some(issued),
        completed: Some(issued + Nanos(row.duration)),
        bytes_done: request.sectors.bytes(),
        pushed_back: row.op.is_ascii_lowercase(),
        delay_reason: DelayReason::Unknown,
        outcome: Outcome::Ok,
        ..IoResult::of(&request, number)
    }
}
