//! Reads calls from the text of strace.

use std::path::PathBuf;

use iosonar_trace::Error;
use iosonar_trace::input::Input;
use iosonar_trace::text::lines::{LineEnd, Lines};

use super::assembler::Assembler;
use crate::{Call, CallReader, Metadata};

/// How to read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Bytes of calls that are held back in memory until an earlier one ends; more go to a temporary file. 64 MiB if `None`.
    pub memory_bytes: Option<usize>,
}

/// Reads calls from the text of strace, in the order of their begin.
pub struct Reader {
    path: PathBuf,
    lines: Lines<Input>,
    assembler: Assembler,
    is_at_end: bool,
}

impl Reader {
    /// Reads from the beginning of a file.
    ///
    /// # Errors
    /// None so far; a file that cannot be read is an error of the first call.
    pub fn open(input: Input, options: &Options) -> iosonar_trace::Result<Self> {
        let path = input.path().to_owned();
        let assembler = Assembler::new(&path, options.memory_bytes);
        Ok(Self { path, lines: Lines::new(input), assembler, is_at_end: false })
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
        self.assembler.line(line.text, line.number, is_cut).map_err(|problem| Error::format(&self.path, problem))
    }
}

impl CallReader for Reader {
    fn next(&mut self) -> iosonar_trace::Result<Option<Call>> {
        loop {
            if let Some(call) = self.assembler.next().map_err(temporary_file)? {
                return Ok(Some(self.assembler.emit(call)));
            }
            if self.is_at_end {
                self.assembler.conclude();
                return Ok(None);
            }
            if let Some(call) = self.read_line()? {
                return Ok(Some(self.assembler.emit(call)));
            }
            if self.assembler.is_full() {
                self.assembler.spill().map_err(temporary_file)?;
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
    Error::io(std::env::temp_dir().join("(temporary file; set TMPDIR to a folder with more room)"), source)
}
