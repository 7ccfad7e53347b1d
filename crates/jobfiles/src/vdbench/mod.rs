//! vdbench's parameter files for raw devices as programs.
//!
//! [`syntax`] reads definitions, [`options`] says what becomes of each parameter, [`definitions`] has them with their
//! defaults, [`names`] finds those that others name, [`run`] says what the runs mean, [`data`] what they write, and
//! [`without_effect`] which parameters they do not ask for. After the user's guide of vdbench 5.04.

mod data;
mod definitions;
mod names;
mod open_flags;
mod options;
mod run;
mod sizes;
mod syntax;
mod without_effect;

pub use options::{GENERAL, RD, SD, WD};

use std::path::Path;

use crate::conversion::{Conversion, Outside, ProgramText};

/// The parameter file as a program. `file` names it in errors.
///
/// # Errors
/// What cannot be converted: a line for each parameter, with file, line and reason.
pub fn convert(file: &str, source: &str, outside: &Outside<'_>) -> Result<Conversion, String> {
    let read = syntax::parse(file, source, outside)?;
    let mut all = definitions::Definitions::new(&read)?;
    if all.runs.is_empty() {
        return Err(format!("{file}: the file has no run; add a run definition: rd=..."));
    }
    let run::Converted { streams, devices, meanings, notes } = run::convert(&all)?;
    let mut ignored = std::mem::take(&mut all.ignored);
    ignored.extend(without_effect::without_effect(&all));
    ignored.sort_by(|a, b| (&a.place, &a.option).cmp(&(&b.place, &b.option)));
    ignored.dedup();
    let name = Path::new(file).file_stem().map_or_else(|| "vdbench".into(), |stem| stem.to_string_lossy().into_owned());
    let mut conversion = Conversion { meanings, notes, ignored, ..Conversion::default() };
    let mut comments = vec![format!("From the vdbench parameter file {file}.")];
    comments.extend(conversion.left_out());
    let about = format!("The vdbench parameter file {file}");
    (conversion.text, conversion.origins) = ProgramText { name, about, comments, devices, streams }.write(file);
    Ok(conversion)
}

#[cfg(test)]
mod tests;
