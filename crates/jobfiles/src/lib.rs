//! Job files of other programs, as programs of `iosonar-workload`: those of [`fio`] and [`vdbench`].

pub mod conversion;
pub mod fio;
pub mod vdbench;

use std::path::Path;

#[cfg(test)]
use iosonar_workload::filament;
use iosonar_workload::{library, origin, program};

use conversion::{Conversion, Outside};
use program::Program;

/// The program of this name: a ready one, the text of one in a file, or a job file that is converted to one.
///
/// # Errors
/// If there is none, or its text is not a program, or the job file cannot be converted.
pub fn open(name: &str) -> Result<Program, String> {
    match convert(name)? {
        Some(conversion) => conversion.program(name),
        None => library::open(name),
    }
}

/// The job file in the file of this name; `None` if its ending is not that of one.
///
/// # Errors
/// If it cannot be read or converted.
pub fn convert(name: &str) -> Result<Option<Conversion>, String> {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "fio" => fio::convert(name, &library::read(name)?, &Outside::PROCESS).map(Some),
        "vdb" | "vdbench" => vdbench::convert(name, &library::read(name)?, &Outside::PROCESS).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
#[path = "../../workload/src/program/tests/device.rs"]
mod device;

#[cfg(test)]
mod tests {
    #[test]
    fn an_include_is_a_small_regular_file() {
        let read = |path: &str| (super::conversion::Outside::PROCESS.read)(std::path::Path::new(path));
        assert_eq!(read("/dev/zero").unwrap_err(), "cannot read /dev/zero: it is a device; name a regular file");
        let program = super::Program::parse(
            "/dev/p.toml",
            "name = \"p\"\nabout = \"x\"\n[[stream]]\nname = \"s\"\nscript = \"zero\"\n",
        );
        assert!(program.unwrap_err().contains("cannot read /dev/zero: it is a device"));
    }
}
