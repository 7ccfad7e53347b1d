//! Job files of other programs as programs: what all of them need. [`crate::fio`] and [`crate::vdbench`] read them.

mod devices;
mod group;
pub mod options;
mod sizes;
mod writer;

pub(crate) use crate::origin::{Origin, Origins};
pub(crate) use devices::{Devices, Extent, Region, is_raw_device};
pub(crate) use group::{Group, weighted};
pub(crate) use sizes::{Sizes, bytes_text, greatest_common_divisor};
pub(crate) use writer::{ProgramText, StreamText, Table};

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use iosonar_trace::{small_file, system_text};

use crate::program::Program;

/// A job file as a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversion {
    /// The text of the program, in TOML.
    pub text: String,
    /// What each job means, a sentence each.
    pub meanings: Vec<String>,
    /// Where the program differs from the job file, and what a run needs besides it.
    pub notes: Vec<String>,
    /// Options that do not change which requests are made.
    pub ignored: Vec<Ignored>,
    /// Where the streams come from, for errors.
    pub(crate) origins: Origins,
}

impl Conversion {
    /// The notes and the ignored options, a line each.
    pub fn left_out(&self) -> Vec<String> {
        let notes = self.notes.iter().map(|note| format!("note: {note}"));
        notes.chain(self.ignored.iter().map(|ignored| format!("ignored: {ignored}"))).collect()
    }

    /// The program, which knows what was left out. `file` names the job file in errors.
    ///
    /// # Errors
    /// If the text is not a program: the job file has options that no program can express.
    pub fn program(&self, file: &str) -> Result<Program, String> {
        Program::converted(file, &self.text, self.origins.clone(), self.left_out())
    }
}

/// An option that does not change which requests are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Where it is.
    pub place: Place,
    /// The option as it was written.
    pub option: String,
    /// Why it does not matter.
    pub reason: String,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.option, self.reason)
    }
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The name of the job file.
    pub file: Arc<str>,
    /// From 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What a job file takes from outside of itself.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// The text of an included file.
    pub read: &'a dyn Fn(&Path) -> Result<String, String>,
    /// The value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Outside<'_> {
    /// Included files and environment variables of this process.
    pub const PROCESS: Outside<'static> = Outside {
        read: &|path| {
            small_file::read_text(path).map_err(|why| format!("cannot read {}: {}", path.display(), system_text(&why)))
        },
        variable: &|name| std::env::var(name).ok(),
    };

    /// Neither files nor variables.
    pub const NOTHING: Outside<'static> =
        Outside { read: &|path| Err(format!("cannot read {}: no files", path.display())), variable: &|_| None };
}
