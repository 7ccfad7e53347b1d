//! Reads calls from the strace text.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use iosonar_trace::Error;
use iosonar_trace::input::Input;
use iosonar_trace::text::lines::{LineEnd, Lines};

use super::assembler::Assembler;
use super::clock::Kind;
use super::gvisor;
use crate::{Call, Metadata};

/// How to read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Bytes of calls that are held back in memory until an earlier one ends; more go to a temporary file. 64 MiB if `None`.
    pub memory_bytes: Option<usize>,
}

/// What [`Reader::advance`] found.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each call")]
pub enum Step {
    /// A call.
    Call(Call),
    /// No call that is known to be the next one.
    Nothing,
    /// The end of the text.
    End,
}

/// Reads calls from strace text, or that of gVisor, in the order of their start.
pub struct Reader {
    path: PathBuf,
    lines: Lines<Input>,
    assembler: Assembler,
    gvisor: Option<gvisor::Translator>,
    is_at_end: bool,
    /// Whether the last read found no text.
    is_waiting: bool,
}

impl Reader {
    /// Reads from the beginning of a file.
    ///
    /// # Errors
    /// None so far; a file that cannot be read is an error of the first call.
    pub fn open(input: Input, options: &Options) -> iosonar_trace::Result<Self> {
        let path = input.path().to_owned();
        let is_gvisor = gvisor::recognise(input.head());
        let mut assembler = Assembler::new(&path, options.memory_bytes);
        if is_gvisor {
            assembler.is_of_gvisor();
        }
        let gvisor = is_gvisor.then(gvisor::Translator::default);
        Ok(Self { path, lines: Lines::new(input), assembler, gvisor, is_at_end: false, is_waiting: false })
    }

    /// The kind of the times, and that of the first line, as it is in the file.
    pub(super) fn zero(&self) -> Option<(Kind, i64)> {
        self.assembler.zero()
    }

    /// Keeps calls that are held back in this file, from which a killed recording is recovered.
    pub fn save_in(&mut self, file: File) {
        self.assembler.save_in(file);
    }

    /// Whether so many calls are held back that [`Reader::save`] is due.
    pub fn is_full(&self) -> bool {
        self.assembler.is_full()
    }

    /// Writes the calls that are held back to the file of [`Reader::save_in`], and frees their memory.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&mut self) -> io::Result<()> {
        self.assembler.save()
    }

    /// Whether the input has no text for now.
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Reads at most one line. If the input is a live one without text for now (an error of the kind `TimedOut`), returns as
    /// for a line without a call.
    ///
    /// # Errors
    /// If the text cannot be read or the temporary file not be used.
    pub fn advance(&mut self) -> iosonar_trace::Result<Step> {
        if let Some(call) = self.assembler.next().map_err(temporary_file)? {
            return Ok(Step::Call(self.assembler.emit(call)));
        }
        if self.is_at_end {
            self.assembler.conclude();
            return Ok(Step::End);
        }
        let line = self.read_line();
        self.is_waiting = matches!(&line, Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::TimedOut);
        if self.is_waiting {
            return Ok(Step::Nothing);
        }
        if let Some(call) = line? {
            return Ok(Step::Call(self.assembler.emit(call)));
        }
        if self.assembler.is_full() && !self.assembler.is_saved() {
            self.assembler.spill().map_err(temporary_file)?;
        }
        Ok(Step::Nothing)
    }

    /// Reads one line, or the end of the file. Returns a call if no other one comes before it.
    fn read_line(&mut self) -> iosonar_trace::Result<Option<Call>> {
        let wrap = |error| Error::io(&self.path, error);
        let Some(line) = self.lines.next_line().map_err(wrap)? else {
            self.is_at_end = true;
            self.assembler.end(self.lines.source().damage());
            return Ok(None);
        };
        let is_cut = line.end == LineEnd::EndOfFile;
        let text = match &mut self.gvisor {
            Some(gvisor) => gvisor.line(line.text),
            None => line.text,
        };
        self.assembler.line(text, line.number, is_cut).map_err(|problem| Error::format(&self.path, problem))
    }
}

impl iosonar_trace::Reader<Call> for Reader {
    fn next(&mut self) -> iosonar_trace::Result<Option<Call>> {
        loop {
            match self.advance()? {
                Step::Call(call) => return Ok(Some(call)),
                Step::Nothing => {}
                Step::End => return Ok(None),
            }
        }
    }

    fn metadata(&self) -> &Metadata {
        self.assembler.metadata()
    }

    fn progress(&self) -> Option<f64> {
        self.lines.source().progress()
    }
}

fn temporary_file(source: std::io::Error) -> Error {
    Error::io(std::env::temp_dir().join("(temporary file; TMPDIR names its directory)"), source)
}
