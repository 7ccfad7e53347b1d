//! fio's job files as programs.
//!
//! [`syntax`] reads sections and options, [`options`] says what becomes of each, [`job`] has those of one job, and the others
//! what they mean: [`place`] where its requests go, [`requests`] which they are, [`pace`] when they come, [`job_end`] when they
//! end, [`streams`] the text.

mod data;
mod engine;
mod job;
mod job_end;
mod laws;
mod options;
mod pace;
mod phases;
mod place;
mod requests;
mod sizes;
mod streams;
mod syntax;
mod values;
mod without_effect;
mod words;

pub use options::OPTIONS;
pub(crate) use values::{number, time_text};

use std::path::Path;

use crate::conversion::{Conversion, Devices, Ignored, Outside, ProgramText};

/// The job file as a program. `file` names it in errors.
///
/// # Errors
/// What cannot be converted: a line for each option, with file, line and reason.
pub fn convert(file: &str, source: &str, outside: &Outside<'_>) -> Result<Conversion, String> {
    let read = syntax::JobFile::parse(file, source, outside)?;
    let (jobs, mut ignored) = job::jobs(&read).map_err(|problems| named(file, problems))?;
    let mut devices = Devices::default();
    let (mut placed, mut problems) = (Vec::new(), Vec::new());
    for job in &jobs {
        match place::places(job, &mut devices) {
            Ok(places) => placed.push((job, places)),
            Err(why) => problems.push(why),
        }
    }
    let (mut program, mut notes, mut meanings) = (ProgramText::default(), Vec::new(), Vec::new());
    let mut phases = phases::Phases::default();
    for (job, places) in &placed {
        match streams::streams(job, places, &devices, &mut phases, &mut notes) {
            Ok((meaning, streams)) => {
                meanings.push(meaning);
                program.streams.extend(streams);
            }
            Err(why) => problems.push(why),
        }
    }
    if !problems.is_empty() {
        let mut seen = std::collections::BTreeSet::new();
        problems.retain(|problem| seen.insert(problem.clone()));
        return Err(problems.join("\n"));
    }
    for (name, value) in &read.variables {
        notes.push(format!("${{{name}}} is {value}, from the environment"));
    }
    let cached: Vec<&str> = jobs.iter().filter(|job| engine::is_buffered(job)).map(|job| job.name.as_str()).collect();
    if !cached.is_empty() {
        let who = if cached.len() == 1 { "goes" } else { "go" };
        notes.push(format!(
            "in fio {} {who} through the page cache (direct=1 is not set); the program's requests go to the device",
            cached.join(", ")
        ));
    }
    ignored.extend(jobs.iter().filter_map(engine::engine));
    ignored.extend(without_effect::without_effect(&jobs));
    ignored.sort_by(|a: &Ignored, b| (&a.place, &a.option).cmp(&(&b.place, &b.option)));
    ignored.dedup();
    let stem = Path::new(file).file_stem().map_or_else(|| "fio".into(), |stem| stem.to_string_lossy().into_owned());
    program.about = jobs
        .iter()
        .find_map(|job| job.text("description"))
        .map_or_else(|| format!("The fio job file {file}"), str::to_owned);
    (program.name, program.devices) = (stem, devices.texts());
    let mut conversion = Conversion { meanings, notes, ignored, ..Conversion::default() };
    program.comments = vec![format!("From the fio job file {file}.")];
    program.comments.extend(conversion.left_out());
    (conversion.text, conversion.origins) = program.write(file);
    Ok(conversion)
}

/// Problems that name no line begin with the file.
fn named(file: &str, problems: String) -> String {
    if problems.starts_with("the file") { format!("{file}: {problems}") } else { problems }
}

#[cfg(test)]
mod counts;
#[cfg(test)]
pub(crate) mod tests;
