//! Ready programs: the texts in `examples/workloads`, embedded; and programs in files.

use std::path::Path;

use iosonar_trace::params::did_you_mean;
use iosonar_trace::{small_file, system_text};

use crate::conversion::{Conversion, Outside};
use crate::program::Program;
use crate::{fio, vdbench};

macro_rules! programs {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../examples/workloads/", $name, ".toml")))),*]
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
/// If there is neither, or the text is not a program. The job file of another program is one if it can be converted.
pub fn open(name: &str) -> Result<Program, String> {
    if let Some((_, text)) = PROGRAMS.iter().find(|(known, _)| *known == name) {
        return Program::parse(&format!("{name}.toml"), text);
    }
    let path = Path::new(name);
    if path.extension().is_none() && !path.exists() {
        let known = PROGRAMS.iter().map(|(name, _)| *name);
        let near = did_you_mean(name, known);
        return Err(format!("unknown program {name}; {near} A file needs its ending: {name}.toml"));
    }
    match convert(name)? {
        Some(conversion) => conversion.program(name),
        None => Program::parse(name, &read(name)?),
    }
}

fn read(name: &str) -> Result<String, String> {
    small_file::read_text(Path::new(name)).map_err(|why| format!("cannot read {name}: {}", system_text(&why)))
}

/// The job file of another program in the file of this name; `None` if its ending is not that of one.
///
/// # Errors
/// If it cannot be read or converted.
pub fn convert(name: &str) -> Result<Option<Conversion>, String> {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "fio" => fio::convert(name, &read(name)?, &Outside::PROCESS).map(Some),
        "vdb" | "vdbench" => vdbench::convert(name, &read(name)?, &Outside::PROCESS).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests;
