//! An open file of rows, and what is to be done with it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use iosonar_trace::transforms::{Pipeline, Transformed};
use iosonar_trace::{Format, Reader, Row};

use crate::output_files::{Replacing, refuse_same_file};
use crate::usage::misuse;

/// An open file.
pub struct Opened<R: Row> {
    /// Its name in messages.
    pub name: String,
    /// What it is, in words.
    pub described: String,
    /// Its format, for `info --json`.
    pub format: serde_json::Value,
    /// The rows.
    pub rows: Box<dyn Reader<R>>,
    /// Refuses a file without any readable row, by the metadata at its end.
    pub accept: Accept<R>,
}

/// A check of the metadata at the end of a file.
pub type Accept<R> = Box<dyn FnOnce(&<R as Row>::Metadata) -> Result<()>>;

/// A conversion.
pub struct Job<'a> {
    /// The files to read.
    pub inputs: &'a [PathBuf],
    /// The file to write.
    pub output: &'a Path,
    /// Its format; `None` is that of its name.
    pub to: Option<&'static Format>,
    /// The transforms to apply.
    pub pipeline: Option<&'a str>,
    /// Whether a file may be replaced.
    pub replacing: &'a Replacing,
}

impl Job<'_> {
    /// The transforms, checked. `is` says what the input is.
    pub fn pipeline<R: Transformed>(&self, is: &str) -> Result<Option<Pipeline<R>>> {
        let Some(text) = self.pipeline else { return Ok(None) };
        let pipeline: Pipeline<R> = match text.parse() {
            Ok(pipeline) => pipeline,
            Err(problem) => misuse!("{} is {is}: {problem}", self.inputs[0].display()),
        };
        if pipeline.is_endless() {
            misuse!("`{pipeline}` never ends: limit it with `repeat times=5`, or append `| select to=1h`");
        }
        pipeline.files().try_for_each(|read| refuse_same_file(read, self.output))?;
        Ok(Some(pipeline))
    }
}

/// The name of the files of one trace in messages.
pub fn name_of(paths: &[PathBuf]) -> String {
    let first = iosonar_trace::path_text(&paths[0]);
    if paths.len() == 1 { first } else { format!("{first} and {} more", paths.len() - 1) }
}
