//! Opens input files by their content, and creates output files by their name.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::formats::format::{Format, Opened, Options};
use crate::formats::{self, FORMATS, classic, parquet};
use crate::io::input::{Compression, Input};
use crate::io::output::{Output, split_compression};
use crate::io::stream::{Reader, Writer};
use crate::model::io_result::IoResult;
use crate::model::metadata::{FOOTER_KEY, Kind, Metadata};
use crate::model::request::Request;
use crate::order::external_sort::SortedLoad;

/// An input file, with its format.
pub struct OpenedFile {
    /// The format that its content has.
    pub format: &'static Format,
    /// How the file is compressed.
    pub compression: Compression,
    /// A reader of its rows.
    pub rows: Opened,
}

/// Opens a load or a run of any format, which is recognised by content; `-` is standard input.
///
/// # Errors
/// If the file cannot be read, or its format is unknown.
pub fn open(path: &Path) -> Result<Opened> {
    Ok(open_file(path, None, &Options::default())?.rows)
}

/// Opens a load. A run is converted into the load that it replayed: its requests, sorted by scheduled time.
///
/// # Errors
/// If the file cannot be read, or its format is unknown.
pub fn open_load(path: &Path) -> Result<Box<dyn Reader<Request>>> {
    into_load(open(path)?)
}

/// Converts a run into the load that it replayed; see [`open_load`].
///
/// # Errors
/// If the run cannot be read, or the directory for temporary files is full.
pub fn into_load(opened: Opened) -> Result<Box<dyn Reader<Request>>> {
    match opened {
        Opened::Load(load) => Ok(load),
        Opened::Run(run) => Ok(Box::new(SortedLoad::of_run(run)?)),
    }
}

/// Opens a file of the format `from`; without it, the format is recognised by content.
///
/// # Errors
/// If the file cannot be read, or its format is unknown.
pub fn open_file(path: &Path, from: Option<&'static Format>, options: &Options) -> Result<OpenedFile> {
    open_files(&[path], from, options)
}

/// Opens several files as one trace, such as the per-CPU files of blktrace.
///
/// # Errors
/// If there is no file, a file cannot be read, their formats are unknown or differ, or a trace of the format is one file.
pub fn open_files(paths: &[&Path], from: Option<&'static Format>, options: &Options) -> Result<OpenedFile> {
    refuse_duplicates(paths)?;
    open_inputs(paths.iter().map(|path| Input::open(path)).collect::<Result<_>>()?, from, options)
}

/// The same for inputs that are open.
///
/// # Errors
/// As [`open_files`].
pub fn open_inputs(mut inputs: Vec<Input>, from: Option<&'static Format>, options: &Options) -> Result<OpenedFile> {
    let paths: Vec<_> = inputs.iter().map(|input| input.path().to_owned()).collect();
    if inputs.iter().any(|input| !input.head().is_empty()) {
        // A CPU without events has an empty file.
        inputs.retain(|input| !input.head().is_empty() || input.damage().is_some());
    }
    let Some(first) = inputs.first() else { return Err(Error::format("", "no file to read")) };
    for input in &inputs {
        if let Some(problem) = formats::unreadable(input.head()) {
            return Err(Error::format(input.path(), problem));
        }
    }
    let format = match from {
        Some(format) => format,
        None => formats::of_content(first)?,
    };
    if options.action.is_some() && !format.has_actions {
        let problem = format!("--action applies to traces of events; the format {} has requests", format.name);
        return Err(Error::format(&paths[0], problem));
    }
    let compression = first.compression();
    // Empty files count as parts only if the format has parts.
    let count = if format.open_parts.is_some() { paths.len() } else { inputs.len() };
    let rows = match (count, format.open_parts) {
        (1, _) => (format.open)(inputs.remove(0), options)?,
        (_, Some(open_parts)) => {
            for part in &inputs {
                if from.is_none() && formats::of_content(part)?.name != format.name {
                    let problem = format!("not of the format {}, unlike {}", format.name, paths[0].display());
                    return Err(Error::format(part.path(), problem));
                }
            }
            open_parts(inputs, options)?
        }
        (_, None) => {
            let problem =
                format!("a trace of the format {} is a single file; convert each file separately", format.name);
            return Err(Error::format(&paths[0], problem));
        }
    };
    Ok(OpenedFile { format, compression, rows })
}

/// Whether a file or device holds a load or run of iosonar, as classic text or as a table with our footer. `None` if it holds
/// neither.
pub fn own(input: Input) -> Option<Kind> {
    let is = |format: &Format| (format.recognise)(input.head());
    let is_table = is(&parquet::FORMAT);
    if !is_table && !is(&classic::FORMAT) {
        return None;
    }
    let path = input.path().to_owned();
    let format = if is_table { &parquet::FORMAT } else { &classic::FORMAT };
    match (format.open)(input, &Options::default()) {
        Ok(opened) => Some(opened.metadata().kind),
        // One of ours, but damaged or of a newer version.
        Err(_) if is_table => has_our_footer_key(&path).ok()?.then_some(Kind::Replay),
        Err(_) => None,
    }
}

/// Whether the last MiB of a file, where Parquet has its footer, contains our key.
fn has_our_footer_key(path: &Path) -> std::io::Result<bool> {
    let mut file = fs::File::open(path)?;
    // Only a seek gives the length of a device.
    let bytes = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(bytes.saturating_sub(1 << 20)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    Ok(end.windows(FOOTER_KEY.len()).any(|window| window == FOOTER_KEY.as_bytes()))
}

/// Refuses a file that is given twice, even under another name: the trace would have each of its requests twice.
fn refuse_duplicates(paths: &[&Path]) -> Result<()> {
    let mut known: HashMap<(u64, u64), &Path> = HashMap::new();
    for (index, &path) in paths.iter().enumerate() {
        let is_stdin = path == Path::new("-");
        let duplicate = match fs::metadata(path) {
            Ok(status) if !is_stdin => known.insert((status.dev(), status.ino()), path),
            // A missing file is reported when it is opened.
            _ => paths[..index].contains(&path).then_some(path),
        };
        if let Some(other) = duplicate {
            let problem = if other == path {
                "given twice; name each file of a trace once".to_owned()
            } else {
                format!("the same file as {}; name each file of a trace once", other.display())
            };
            return Err(Error::format(path, problem));
        }
    }
    Ok(())
}

/// Creates a load in the format that the ending of its name selects; `-` is standard output. `known` is the metadata known
/// before the first row; [`Writer::finish`] takes the final metadata.
///
/// # Errors
/// If the ending selects no format, the format cannot hold loads, or the file cannot be created.
pub fn create_load(path: &Path, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    create_load_as(path, format_for(path)?, known)
}

/// Creates a load in a given format.
///
/// # Errors
/// If the format cannot hold loads, or the file cannot be created.
pub fn create_load_as(path: &Path, format: &Format, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    let create = format.create_load.ok_or_else(|| cannot_hold(path, format, "loads", |f| f.create_load.is_some()))?;
    create(Output::create(path)?, known)
}

/// Creates a run; else like [`create_load`].
///
/// # Errors
/// If the ending selects no format, the format cannot hold runs, or the file cannot be created.
pub fn create_run(path: &Path, known: &Metadata) -> Result<Box<dyn Writer<IoResult>>> {
    create_run_as(path, format_for(path)?, known)
}

/// Creates a run in a given format.
///
/// # Errors
/// If the format cannot hold runs, or the file cannot be created.
pub fn create_run_as(path: &Path, format: &Format, known: &Metadata) -> Result<Box<dyn Writer<IoResult>>> {
    let create = format.create_run.ok_or_else(|| cannot_hold(path, format, "runs", |f| f.create_run.is_some()))?;
    create(Output::create(path)?, known)
}

/// The format that the ending of a name selects.
///
/// # Errors
/// If it selects none, or a compression that the format must not have.
pub fn format_for(path: &Path) -> Result<&'static Format> {
    let name = split_compression(path).0.to_string_lossy().to_ascii_lowercase();
    let is_selected = |format: &&Format| format.extensions.iter().any(|ending| name.ends_with(ending));
    let format = FORMATS.iter().copied().find(is_selected).ok_or_else(|| {
        let endings: Vec<&str> = FORMATS.iter().flat_map(|format| format.extensions).copied().collect();
        Error::usage(
            path,
            format!(
                "cannot choose a format by this name: let it end in one of {} (text also with .gz or .zst), or name the \
                 format with --to",
                endings.join(" ")
            ),
        )
    })?;
    format.refuse_compression(path)?;
    Ok(format)
}

fn cannot_hold(path: &Path, format: &Format, what: &str, can: fn(&Format) -> bool) -> Error {
    let names: Vec<&str> = FORMATS.iter().copied().filter(|f| can(f)).map(|f| f.name).collect();
    Error::usage(path, format!("cannot write {what} in the format {}; use one of {}", format.name, names.join(" ")))
}
