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
use super::details;
use super::load::bad_line;
use super::messages::{FAKE_MARK, Messages};
use super::preamble::{NAME, Preamble};
use super::row::{self, Columns, Kind, Problem, Row};

/// The beginning of a message about comments.
const COMMENTS: &str = "the comments \"# iosonar-run";

pub struct RunReader {
    lines: Lines<Input>,
    metadata: Metadata,
    preamble: Option<Preamble>,
    first: Option<IoResult>,
    messages: Messages,
    stated: CommentMetadata,
    seen: Seen,
    /// Whether the file was found to be cut short.
    cut_short: bool,
    /// Whether the warnings of the end were added.
    concluded: bool,
}

/// What was seen of a file, which tells whether it was changed after it was written.
#[derive(Default)]
struct Seen {
    /// Rows in comments.
    in_comments: u64,
    /// Rows with a seventh column.
    with_details: u64,
    /// Whether there was a line of column names of a result.
    columns: bool,
    /// Whether the first line is a row: it may lack its beginning.
    begins_with_row: bool,
    /// Whether there was a row before the column names and comments, or behind the end: they were sorted.
    is_moved: bool,
    /// Lines after the first row that have no meaning.
    text: u64,
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
            seen: Seen::default(),
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
            let (mut found, mut has_details, mut in_comment) = (None, false, false);
            match kind {
                Kind::Row(row) => {
                    let mut record = plain_record(&row, number);
                    let details = row::details(line.text);
                    has_details = details.is_some();
                    if let Some(damage) = details.and_then(|text| details::apply_column(&mut record, text).err()) {
                        bad_row(&mut self.metadata, &line, damage);
                        continue;
                    }
                    found = Some(record);
                }
                Kind::Comment(text) => match text.strip_prefix(ROW) {
                    Some(text) => {
                        in_comment = true;
                        match details::parse_row(text) {
                            Ok(record) => found = Some(record),
                            Err(damage) => bad_row(&mut self.metadata, &line, damage),
                        }
                    }
                    None if self.stated.take(text) => {}
                    None => {
                        bad_line(&mut self.metadata, line.number, &excerpt(line.text), "a damaged comment of iosonar");
                    }
                },
                // Of a load in front of the result.
                Kind::Lost(_) => {}
                Kind::Bad(problem) => bad_row(&mut self.metadata, &line, problem),
                Kind::LoadColumns | Kind::ResultColumns => {
                    self.seen.columns |= kind == Kind::ResultColumns;
                    self.end_preamble();
                    continue;
                }
                Kind::Nothing | Kind::Text => {
                    let is_message = self.messages.parse(line.text);
                    match &mut self.preamble {
                        Some(preamble) if !is_message => preamble.push(line.text),
                        // What is no row has no columns.
                        None if !is_message && kind == Kind::Text && has_columns(line.text) => {
                            bad_row(&mut self.metadata, &line, Problem::Time);
                        }
                        None if !is_message => {
                            let has_words = line.text.iter().any(u8::is_ascii_alphanumeric);
                            self.seen.text += u64::from(kind == Kind::Text && has_words);
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
            let seen = &mut self.seen;
            seen.begins_with_row |= line.number == 1;
            seen.is_moved |=
                !seen.columns && !self.stated.is_any() || self.stated.has_end() || self.messages.has_last_line();
            seen.in_comments += u64::from(in_comment);
            seen.with_details += u64::from(has_details);
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
        // Their number never falls.
        let known = metadata.devices.len();
        metadata.devices.extend(of_file.devices.into_iter().skip(known));
        if metadata.devices.is_empty() {
            metadata.devices.push(Device::default());
        }
    }

    /// At the end of the file, finds out whether it is complete.
    fn conclude(&mut self) -> Result<()> {
        self.metadata.complete = true;
        note_damage(self.lines.source(), &mut self.metadata);
        self.cut_short |= !self.metadata.complete;
        let begin = self.usable(self.stated.begin())?;
        let end = self.usable(self.stated.end())?;
        let is_ours =
            self.stated.is_any() || self.seen.in_comments + self.seen.with_details > 0 || self.messages.is_ours();
        let has_begin = begin.is_some();
        match end {
            Some(end) => self.conclude_by(end, has_begin),
            None => self.conclude_without_end(begin, is_ours),
        }
        self.mark_fake();
        Ok(())
    }

    /// Checks by the metadata of the end whether the file has all rows.
    fn conclude_by(&mut self, end: Metadata, has_begin: bool) {
        let (stated, rows) = (end.counts.requests, self.metadata.counts.requests);
        let mut is_whole = stated == rows && !self.cut_short;
        if !self.messages.has_last_line() {
            self.metadata.warning("the last line is missing: the result was cut short");
            is_whole = false;
        }
        if stated != rows {
            let (stated, rows) = (human::count(stated), human::count(rows));
            self.metadata.warning(format!("the result has {rows} rows, but the run wrote {stated}"));
        }
        if !has_begin {
            self.metadata
                .warning(format!("{COMMENTS} begin\" are missing or damaged: the beginning was cut off or changed"));
            is_whole &= !self.seen.begins_with_row;
        }
        is_whole &= self.check_details() & self.check_runs();
        let is_complete = end.complete && is_whole;
        // The warnings and losses of the beginning are among those of the end.
        self.replace_metadata(end);
        self.metadata.complete = is_complete;
        if let Some(run) = self.metadata.run.as_mut().filter(|_| !is_whole) {
            // They count other rows.
            run.statistics = Field::Missing;
        }
    }

    /// Checks by the closing statistics of blkreplay whether the file has all rows.
    fn conclude_without_end(&mut self, begin: Option<Metadata>, is_ours: bool) {
        let (has_begin, seen) = (begin.is_some(), &self.seen);
        if is_ours {
            let mut lost = String::from("statistics and verdict are lost");
            if seen.in_comments == 0 {
                lost.push_str(", and perhaps requests in comments, such as flushes");
            }
            if !has_begin {
                lost.push_str(", and options and machine");
                if self.messages.fake().or(self.stated.fake().as_deref()).is_none() {
                    lost.push_str("; whether the result is fake is not known");
                }
            }
            let places = if has_begin { "end" } else { "begin\" and \"end" };
            self.metadata.warning(format!("{COMMENTS} {places}\" are missing or damaged: {lost}"));
            self.metadata.complete = false;
        } else if !seen.columns {
            self.metadata.warning(
                "the line of column names is missing: the beginning of the result was cut off; its options, and whether it \
                 is fake, are not known",
            );
            self.metadata.complete = false;
        }
        if seen.is_moved && seen.text > 0 {
            let lines = human::counted(seen.text, "line");
            self.metadata.warning(format!("{lines} of text behind the first row left out: the file was sorted"));
        }
        self.check_details();
        self.check_runs();
        match begin {
            Some(begin) => {
                self.replace_metadata(begin);
                self.metadata.complete = false;
            }
            None => self.messages.store(&mut self.metadata),
        }
        self.messages.conclude(&mut self.metadata, self.seen.in_comments);
        self.metadata.complete &= !self.cut_short;
    }

    /// Whether as many rows have details as were written, and rows without them are still in their place.
    fn check_details(&mut self) -> bool {
        let (requests, seen) = (self.metadata.counts.requests, &self.seen);
        let plain = requests.saturating_sub(seen.in_comments + seen.with_details);
        if self.stated.is_any() && seen.is_moved && plain > 0 {
            let rows = human::counted(plain, "row");
            self.metadata
                .warning(format!("{rows} without details got the number of another place: the file was sorted"));
        }
        let Some(written) = self.stated.details().filter(|&written| written != seen.with_details) else { return true };
        let (rows, written) = (human::count(seen.with_details), human::count(written));
        self.metadata.warning(format!("{rows} rows have details, the seventh column, but the run wrote {written}"));
        false
    }

    /// Whether the file is the result of one run.
    fn check_runs(&mut self) -> bool {
        let is_one = !self.stated.are_several();
        if !is_one {
            self.metadata.warning(
                "the file has results of several runs, or comments twice: options and machine are those of the last",
            );
            self.metadata.complete = false;
        }
        is_one
    }

    /// Keeps the mark of a fake result wherever it was.
    fn mark_fake(&mut self) {
        // A load that was made from a fake result may say so in its preamble.
        let line = self.messages.fake().filter(|_| !self.metadata.source.preamble.contains(FAKE_MARK));
        let Some(mark) = self.stated.fake().or(line.map(str::to_owned)) else { return };
        let run = self.metadata.run.get_or_insert_default();
        if run.fake.text().is_none() {
            run.fake = mark.into();
        }
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

/// Whether a line has the columns of a row.
pub fn has_columns(line: &[u8]) -> bool {
    line.iter().filter(|&&byte| byte == b';').count() >= 3
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
