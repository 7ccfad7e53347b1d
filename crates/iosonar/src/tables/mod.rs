//! Files of rows of any kind, as `convert`, `edit`, `info` and `recover` see them. What differs between kinds is in the module
//! of their family; a further family is a module like these, and a line in [`FAMILIES`].

mod calls;
mod convert;
mod described;
mod edit;
mod family;
mod info;
mod opened;
mod reading;
mod recover;
mod requests;
mod window;

use std::path::{Path, PathBuf};

use anyhow::Result;
use iosonar_trace::input::Input;

pub use convert::copy;
pub use described::Info;
pub use family::AnyFile;
pub use opened::Job;
pub use reading::Reading;
pub use recover::Recovered;
pub use requests::formats::writable_format_named;
pub use requests::report;

use edit::Edits;
use family::Family;

/// All families. The last one takes every file that no other recognises.
static FAMILIES: &[&Family] = &[&calls::FAMILY, &requests::FAMILY];

/// The answer of the first family that has one.
fn first_answer<T>(ask: impl Fn(&Family) -> Result<Option<T>>) -> Result<T> {
    FAMILIES.iter().find_map(|family| ask(family).transpose()).expect("the last family takes every file")
}

/// Opens the files of one trace. The name of the output says what standard input or a pipe brings.
pub fn open(inputs: &[PathBuf], output: Option<&Path>, reading: &Reading) -> Result<Box<dyn AnyFile>> {
    first_answer(|family| (family.open)(inputs, output, reading))
}

/// Makes the result of a killed replay from its journal.
pub fn recover_journal(journal: &Path, output: &Path) -> Result<Recovered> {
    first_answer(|family| (family.recover)(journal, output))
}

/// Opens files by their content, also those that can be opened only once, such as pipes.
pub fn open_by_content(inputs: &[PathBuf], reading: &Reading) -> Result<Box<dyn AnyFile>> {
    let [one] = inputs else { return open(inputs, None, reading) };
    if one.is_file() || one.is_dir() {
        return open(inputs, None, reading);
    }
    let mut input = match Input::open(one) {
        Ok(input) => input,
        // It may be the common name of several files.
        Err(error) => {
            return open(inputs, None, reading).map_err(|other| if one.exists() { error.into() } else { other });
        }
    };
    for family in FAMILIES {
        match (family.open_input)(input, reading)? {
            Ok(file) => return Ok(file),
            Err(other) => input = other,
        }
    }
    unreachable!("the last family takes every file")
}

/// The transforms of all families, those of loads first.
pub fn edits() -> impl Iterator<Item = &'static Edits> {
    FAMILIES.iter().rev().map(|family| &family.edits)
}

/// Checks that a pipeline is valid for the rows of a family.
pub fn checked(text: &str) -> Result<String, String> {
    edit::checked(text, edits())
}
