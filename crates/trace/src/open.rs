//! Opens what is read, by its content, and begins what is written, by its name.

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

/// A file that was opened, and what it was found to be.
pub struct OpenedFile {
    /// Its format.
    pub format: &'static Format,
    /// How it is packed.
    pub compression: Compression,
    /// Its rows.
    pub rows: Opened,
}

/// Opens a load or a run, whatever its format; `-` is standard input. The format is told by the content.
///
/// # Errors
/// If the file can't be read, or is of no known format.
pub fn open(path: &Path) -> Result<Opened> {
    Ok(open_file(path, None, &Options::default())?.rows)
}

/// Opens a load. A run is taken for the load that it replayed: its requests at their scheduled times, in that order.
///
/// # Errors
/// If the file can't be read, or is of no known format.
pub fn open_load(path: &Path) -> Result<Box<dyn Reader<Request>>> {
    into_load(open(path)?)
}

/// The same on what was opened already.
///
/// # Errors
/// If the run can't be read, or there is no room to sort it.
pub fn into_load(opened: Opened) -> Result<Box<dyn Reader<Request>>> {
    match opened {
        Opened::Load(load) => Ok(load),
        Opened::Run(run) => Ok(Box::new(SortedLoad::of_run(run)?)),
    }
}

/// Opens a file, and tells what it is. `from` names the format where the content is not to be asked.
///
/// # Errors
/// If the file can't be read, or is of no known format.
pub fn open_file(path: &Path, from: Option<&'static Format>, options: &Options) -> Result<OpenedFile> {
    open_files(&[path], from, options)
}

/// Opens the files that together are one trace, as the per-CPU files of blktrace.
///
/// # Errors
/// If there is none, one can't be read, they are of different or unknown formats, or the format has no such traces.
pub fn open_files(paths: &[&Path], from: Option<&'static Format>, options: &Options) -> Result<OpenedFile> {
    refuse_twins(paths)?;
    let mut inputs = paths.iter().map(|path| Input::open(path)).collect::<Result<Vec<_>>>()?;
    if inputs.iter().any(|input| !input.head().is_empty()) {
        // A CPU on which nothing happened has an empty file.
        inputs.retain(|input| !input.head().is_empty() || input.damage().is_some());
    }
    let Some(first) = inputs.first() else { return Err(Error::format("", "no file to read")) };
    for input in &inputs {
        if let Some(problem) = formats::wrapped(input.head()) {
            return Err(Error::format(input.path(), problem));
        }
    }
    let format = match from {
        Some(format) => format,
        None => formats::of_content(first)?,
    };
    if options.action.is_some() && !format.has_actions {
        let problem =
            format!("the format {} holds requests, not events, of which one action could be taken", format.name);
        return Err(Error::format(paths[0], problem));
    }
    let compression = first.compression();
    // One of several that are not empty is a whole trace all the same, not one part of it.
    let alone = if format.open_parts.is_some() { paths.len() } else { inputs.len() };
    let rows = match (alone, format.open_parts) {
        (1, _) => (format.open)(inputs.remove(0), options)?,
        (_, Some(open_parts)) => {
            for part in &inputs {
                if from.is_none() && formats::of_content(part)?.name != format.name {
                    let problem = format!("not of the format {}, as {}", format.name, paths[0].display());
                    return Err(Error::format(part.path(), problem));
                }
            }
            open_parts(inputs, options)?
        }
        (_, None) => {
            let problem = format!("a trace of the format {} is one file; convert the others one by one", format.name);
            return Err(Error::format(paths[0], problem));
        }
    };
    Ok(OpenedFile { format, compression, rows })
}

/// What of iosonar's own a file or a device holds, a load or a run, if it does: as classic text, or as a table with our footer.
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
        // Damaged, or of another version, but ours.
        Err(_) if is_table => names_us_in_its_end(&path).ok()?.then_some(Kind::Replay),
        Err(_) => None,
    }
}

/// Whether the end of a file, where Parquet has its footer, has the key of ours.
fn names_us_in_its_end(path: &Path) -> std::io::Result<bool> {
    let mut file = fs::File::open(path)?;
    // The length of a device is known by seeking only.
    let bytes = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(bytes.saturating_sub(1 << 20)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    Ok(end.windows(FOOTER_KEY.len()).any(|window| window == FOOTER_KEY.as_bytes()))
}

/// Refuses a file that is given twice, also by another name: each of its requests would be there twice.
fn refuse_twins(paths: &[&Path]) -> Result<()> {
    let mut known: HashMap<(u64, u64), &Path> = HashMap::new();
    for (index, &path) in paths.iter().enumerate() {
        let is_input = path == Path::new("-");
        let twin = match fs::metadata(path) {
            Ok(status) if !is_input => known.insert((status.dev(), status.ino()), path),
            // Whatever is wrong with it is told when it is opened.
            _ => paths[..index].contains(&path).then_some(path),
        };
        if let Some(twin) = twin {
            let problem = if twin == path {
                "it is given twice; each file of a trace belongs into it once".to_owned()
            } else {
                format!("the same file as {}; each file of a trace belongs into it once", twin.display())
            };
            return Err(Error::format(path, problem));
        }
    }
    Ok(())
}

/// Begins a load under that name; `-` is standard output. The format is told by the name's ending: there is no content
/// yet. `known` is what is known before the first row; [`Writer::finish`] takes the rest.
///
/// # Errors
/// If the name asks for no format that can be written, or the system refuses.
pub fn create_load(path: &Path, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    create_load_as(path, format_for(path)?, known)
}

/// The same in a given format.
///
/// # Errors
/// If that format can't be written, or the system refuses.
pub fn create_load_as(path: &Path, format: &Format, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    let create = format.create_load.ok_or_else(|| cannot_hold(path, format, "loads", |f| f.create_load.is_some()))?;
    create(Output::create(path)?, known)
}

/// Begins a run under that name; else like [`create_load`].
///
/// # Errors
/// If the name asks for no format that holds runs, or the system refuses.
pub fn create_run(path: &Path, known: &Metadata) -> Result<Box<dyn Writer<IoResult>>> {
    create_run_as(path, format_for(path)?, known)
}

/// The same in a given format.
///
/// # Errors
/// If that format holds no runs, or the system refuses.
pub fn create_run_as(path: &Path, format: &Format, known: &Metadata) -> Result<Box<dyn Writer<IoResult>>> {
    let create = format.create_run.ok_or_else(|| cannot_hold(path, format, "runs", |f| f.create_run.is_some()))?;
    create(Output::create(path)?, known)
}

/// The format that a name asks for.
///
/// # Errors
/// If it asks for none, or for a compression that the format must not have.
pub fn format_for(path: &Path) -> Result<&'static Format> {
    let name = split_compression(path).0.to_string_lossy().to_ascii_lowercase();
    let asked_for = |format: &&Format| format.endings.iter().any(|ending| name.ends_with(ending));
    let format = FORMATS.iter().copied().find(asked_for).ok_or_else(|| {
        let endings: Vec<&str> = FORMATS.iter().flat_map(|format| format.endings).copied().collect();
        Error::usage(
            path,
            format!(
                "its name does not tell the format to write: let it end in one of {} (text also with .gz or .zst), or \
                 name the format with --to",
                endings.join(" ")
            ),
        )
    })?;
    format.refuse_packing(path)?;
    Ok(format)
}

fn cannot_hold(path: &Path, format: &Format, what: &str, can: fn(&Format) -> bool) -> Error {
    let names: Vec<&str> = FORMATS.iter().copied().filter(|f| can(f)).map(|f| f.name).collect();
    Error::usage(path, format!("the format {} is not written for {what}; these are: {}", format.name, names.join(" ")))
}
