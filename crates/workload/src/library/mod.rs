//! Ready programs: the texts in `examples/workloads`, embedded; and programs in files.

use std::path::Path;

use iosonar_trace::params::did_you_mean;
use iosonar_trace::{small_file, system_text};

use crate::program::Program;

macro_rules! programs {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../programs/", $name, ".toml")))),*]
    };
}

/// The names of all ready programs, with their texts.
pub static PROGRAMS: &[(&str, &str)] = programs![
    "random-reads",
    "random-mix",
    "sequential-writes",
    "tpcb",
    "spc1",
    "log-and-data",
    "checkpoint",
    "backup",
    "blender",
    "mail",
    "video",
    "btree",
    "lsm",
];

/// The ready program of this name, or the program in the file of this name.
///
/// # Errors
/// If there is neither, or the text is not a program.
pub fn open(name: &str) -> Result<Program, String> {
    if let Some((_, text)) = PROGRAMS.iter().find(|(known, _)| *known == name) {
        return Program::parse(&format!("{name}.toml"), text);
    }
    let path = Path::new(name);
    if path.extension().is_none() && !path.exists() {
        let known = PROGRAMS.iter().map(|(name, _)| *name);
        let near = did_you_mean(name, known);
        return Err(format!("unknown program {name} (a file needs its ending: {name}.toml); {near}"));
    }
    Program::parse(name, &read(name)?)
}

/// The text of a program or a job file.
///
/// # Errors
/// If it cannot be read.
pub fn read(name: &str) -> Result<String, String> {
    small_file::read_text(Path::new(name)).map_err(|why| format!("cannot read {name}: {}", system_text(&why)))
}

#[cfg(test)]
mod tests;
