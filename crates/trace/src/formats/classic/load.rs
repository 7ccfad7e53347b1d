//! Reads a load.

use crate::error::{Error, Result};
use crate::io::input::Input;
use crate::io::stream::Reader;
use crate::model::metadata::Metadata;
use crate::model::request::{Op, Request};
use crate::model::row::{Footer as _, Row as _};
use crate::model::units::{Nanos, Sector, Sectors};
use crate::rows::{excerpt, metadata_of, note_damage};
use crate::text::lines::{LineEnd, Lines};

use super::load_comment;
use super::preamble::{NAME, Preamble, is_replayer_message};
use super::row::{self, Columns, Kind, Problem, Row};

pub struct LoadReader {
    lines: Lines<Input>,
    metadata: Metadata,
    /// The first row and its line number, which was read together with the preamble.
    first: Option<(Row, u64)>,
    text: PendingText,
    /// Added to every time since the last backward jump.
    shift: i64,
    last: i64,
    /// Whether damage at the end of the file was reported.
    concluded: bool,
}

/// Text of which it is not known yet whether it is another preamble or bad lines.
#[derive(Default)]
struct PendingText {
    lines: u64,
    /// Numbers and excerpts of the first lines.
    excerpts: Vec<(u64, String)>,
}

impl LoadReader {
    /// Reads up to the first row.
    pub fn new(input: Input) -> Result<Self> {
        let metadata = metadata_of(&input, NAME);
        let mut reader = Self {
            lines: Lines::new(input),
            metadata,
            first: None,
            text: PendingText::default(),
            shift: 0,
            last: i64::MIN,
            concluded: false,
        };
        let mut preamble = Preamble::default();
        reader.first = reader.advance(Some(&mut preamble))?;
        reader.metadata.source.preamble = preamble.finish();
        Ok(reader)
    }

    /// The next row and its line number. `preamble` collects the text before the first line of column names or row.
    fn advance(&mut self, mut preamble: Option<&mut Preamble>) -> Result<Option<(Row, u64)>> {
        loop {
            let line = match self.lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(e) => return Err(Error::io(self.lines.source().path(), e)),
            };
            let mut kind = row::classify(line.text, Columns::Four);
            if line.end == LineEnd::EndOfFile && kind != Kind::Nothing {
                self.metadata.complete = false;
                if let Kind::Row(row) = &mut kind {
                    // Their digits may be missing.
                    (row.delay, row.duration) = (0, 0);
                }
                let fate = if matches!(kind, Kind::Row(_)) { "kept" } else { "left out" };
                self.metadata.warning(format!(
                    "line {} has no newline: the file was cut short there; the line is {fate}",
                    line.number
                ));
                if !matches!(kind, Kind::Row(_)) {
                    break;
                }
            }
            match kind {
                Kind::Row(row) => {
                    let number = line.number;
                    self.text.count_as_bad(&mut self.metadata);
                    return Ok(Some((row, number)));
                }
                Kind::Bad(problem) => bad_line(&mut self.metadata, line.number, &excerpt(line.text), problem),
                Kind::LoadColumns | Kind::ResultColumns => {
                    self.text = PendingText::default();
                    preamble = None;
                }
                // Of a result whose rows became a load.
                Kind::Comment(_) => {}
                Kind::Lost(text) => load_comment::apply(text, &mut self.metadata),
                Kind::Nothing | Kind::Text => match &mut preamble {
                    Some(preamble) => preamble.push(line.text),
                    None if kind == Kind::Text && !is_replayer_message(line.text) => {
                        self.text.push(line.number, line.text);
                    }
                    None => {}
                },
            }
        }
        self.text.count_as_bad(&mut self.metadata);
        if !std::mem::replace(&mut self.concluded, true) {
            note_damage(self.lines.source(), &mut self.metadata);
        }
        Ok(None)
    }

    /// The time of a row, shifted so that time never goes back; `None` if it is too large.
    fn shifted_time(&mut self, row: &Row, number: u64) -> Option<i64> {
        let mut at = row.start.checked_add(self.shift).filter(|&at| Nanos(at).is_time())?;
        if at < self.last {
            let back = self.last - at;
            self.shift = self.shift.checked_add(back)?;
            self.metadata.counts.time_jumps += 1;
            self.metadata.warning_of_line(format!(
                "line {number}: time goes back by {}; this row and all later ones are shifted by {} in total",
                Nanos(back),
                Nanos(self.shift)
            ));
            at = self.last;
        }
        Some(at)
    }
}

impl Reader<Request> for LoadReader {
    fn next(&mut self) -> Result<Option<Request>> {
        loop {
            let next = match self.first.take() {
                Some(first) => Some(first),
                None => self.advance(None)?,
            };
            let Some((row, number)) = next else { return Ok(None) };
            let Some(at) = self.shifted_time(&row, number) else {
                bad_line(&mut self.metadata, number, "", Problem::TooLarge);
                continue;
            };
            self.last = at;
            let op = if row.op.eq_ignore_ascii_case(&b'R') { Op::Read } else { Op::Write };
            let known = |ns: i64| (ns != 0).then_some(Nanos(ns));
            let mut request = Request {
                queued: known(row.delay),
                latency: known(row.duration),
                ..Request::new(Nanos(at), op, Sector(row.sector), Sectors(row.sectors))
            };
            self.metadata.count_impossible(request.remove_impossible());
            self.metadata.count_request(&request);
            return Ok(Some(request));
        }
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn has_all_devices(&self) -> bool {
        true
    }

    fn progress(&self) -> Option<f64> {
        self.lines.source().progress()
    }
}

/// Counts and reports a bad line.
pub fn bad_line(metadata: &mut Metadata, number: u64, text: &str, problem: impl std::fmt::Display) {
    metadata.counts.bad_lines += 1;
    let colon = if text.is_empty() { "" } else { ": " };
    metadata.warning_of_line(format!("line {number} left out: {problem}{colon}{text}"));
}

impl PendingText {
    fn push(&mut self, number: u64, text: &[u8]) {
        self.lines += 1;
        if self.excerpts.len() < 100 {
            self.excerpts.push((number, excerpt(text)));
        }
    }

    /// Counts and reports the lines as bad, because no line of column names follows them.
    fn count_as_bad(&mut self, metadata: &mut Metadata) {
        if self.lines == 0 {
            return;
        }
        let Self { lines, excerpts } = std::mem::take(self);
        metadata.counts.bad_lines += lines;
        for (number, text) in excerpts {
            metadata.warning_of_line(format!("line {number} left out: neither a row nor part of a preamble: {text}"));
        }
    }
}
