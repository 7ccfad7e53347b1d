//! Calls to files in the commands that also take loads: `convert`, `edit`, `info`, `recover`.

pub mod convert;
pub mod copy;
pub mod edit;
pub mod info;
mod summary;
mod windows;

use std::path::Path;

use anyhow::Result;
use iosonar_files::FileKind;

use crate::usage::misuse;

/// Whether the input is a file of calls, or the files of strace -ff, according to its content. Standard input and pipes are not read for this: then
/// the name of the output decides.
pub fn kind_of(inputs: &[&Path], output: Option<&Path>) -> Result<Option<FileKind>> {
    let found = inputs.iter().find_map(|input| iosonar_files::recognise(input));
    let by_name = output.filter(|_| inputs.iter().any(|input| !input.is_file())).and_then(kind_by_name);
    let Some(kind) = found.or(by_name) else { return Ok(None) };
    if inputs.len() > 1 && kind != FileKind::Strace {
        misuse!("a trace of calls is a single file, unless strace -ff wrote it; name one input and one output");
    }
    Ok(Some(kind))
}

/// The kind of a file by its name: `NAME.calls.parquet`, or `NAME.strace` with or without compression.
pub fn kind_by_name(path: &Path) -> Option<FileKind> {
    let name = path.file_name()?.to_str()?;
    if name.ends_with(".calls.parquet") {
        return Some(FileKind::Calls);
    }
    if name.ends_with(".calls-run.parquet") {
        return Some(FileKind::CallsRun);
    }
    let bare = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    bare.ends_with(".strace").then_some(FileKind::Strace)
}
