//! `info` of any rows.

use std::path::PathBuf;

use anyhow::{Result, bail};
use iosonar_trace::Footer;
use iosonar_trace::run_info::MachineUsage;
use serde_json::{Value, json};

use super::described::{Described, Info, Lines, number, text};
use super::opened::Opened;
use super::window::{self, Window};
use crate::human;
use crate::progress::Rows;

/// Warnings that are printed; a damaged file may have a hundred.
const MAX_NOTES: usize = 8;

/// Reads all rows, and says what is in the file, or in a window of it.
pub fn of<R: Described>(file: Opened<R>, paths: &[PathBuf], window: Option<Window>) -> Result<Info> {
    let Opened { name, described, format, mut rows, accept } = file;
    let mut summary = R::summary(&*rows, window.and_then(|window| window.from));
    let mut counted = rows.metadata().clone();
    counted.clear_totals();
    let mut progress = Rows::of(&format!("reading {name}"), R::NOUN);
    while let Some(row) = rows.next()? {
        match window {
            Some(window) if !window.contains(row.due(rows.metadata())) => R::pass(&mut summary, &row),
            Some(_) => {
                row.count(&mut counted);
                R::add(&mut summary, &row);
            }
            None => R::add(&mut summary, &row),
        }
        progress.row(|| rows.progress());
    }
    progress.finish();
    let mut metadata = rows.metadata().clone();
    accept(&metadata)?;
    if window.is_some() {
        if metadata.rows() > 0 && counted.rows() == 0 {
            bail!("{name} has no {} in this window", R::NOUN);
        }
        metadata = metadata.with_totals_of(&counted);
    }
    let mut object = json!(metadata);
    let bytes = |path: &PathBuf| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.len());
    object["path"] = name.into();
    object["file_bytes"] = json!(paths.iter().map(bytes).sum::<Option<u64>>());
    object["format"] = format;
    if let Some(window) = window {
        object["window"] = window.json();
    }
    let warnings = object["warnings"].as_array().cloned().unwrap_or_default();
    let doubts = metadata.doubts().into_iter().map(|doubt| Value::from(format!("doubtful: {doubt}")));
    let doubts: Vec<Value> = doubts.filter(|doubt| !warnings.contains(doubt)).collect();
    object["warnings"] = [warnings, doubts].concat().into();
    if let Some(object) = object.as_object_mut() {
        R::enter(summary, &metadata, object);
    }
    let text = for_people::<R>(&object, &described);
    Ok(Info { object, text })
}

/// The targets of a run; empty if it had none.
fn targets(run: &Value) -> String {
    const SHOWN: usize = 3;
    let targets = run["targets"].as_array().into_iter().flatten().filter(|target| target["kind"] != "none");
    let paths: Vec<String> = targets.map(|target| text(&target["path"])).collect();
    let more = if paths.len() > SHOWN { format!(" and {} more", paths.len() - SHOWN) } else { String::new() };
    paths.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ") + &more
}

/// Formats the object as text.
fn for_people<R: Described>(object: &Value, described: &str) -> String {
    let mut lines = Lines::default();
    lines.add("file", text(&object["path"]));
    let size = object["file_bytes"].as_u64().map_or(String::new(), |bytes| format!(", {}", human::bytes(bytes)));
    lines.add("is", format!("{described}{size}"));
    lines.add("window", window::words(&object["window"], R::NOUN));
    let complete = match (number(&object["unreadable_rows"]), object["complete"] == true) {
        (0, true) => "yes".into(),
        (0, false) => "NO: cut short".into(),
        (unreadable, _) => format!("NO: damaged, {} unreadable", human::counted(unreadable, "row")),
    };
    lines.add("complete", complete);
    let run = &object["run"];
    lines.add("FAKE", text(&run["fake"]));
    lines.add("target", targets(run));
    lines.add("root", text(&run["root"]["path"]));
    lines.add("verdict", text(&run["statistics"]["verdict"]["sentence"]));
    let usage = serde_json::from_value::<MachineUsage>(run["statistics"]["usage"].clone());
    lines.add("machine", usage.map(|usage| usage.words()).unwrap_or_default());
    let source = &object["source"];
    if source["path"] != object["path"] && source["path"].is_string() {
        lines.add("made from", format!("{} ({})", text(&source["path"]), text(&source["format"])));
    }
    if let Some(epoch) = object["epoch_unix_ns"].as_i64() {
        let first = object["span"]["first_ns"].as_i64().unwrap_or(0);
        lines.add("began", human::moment(epoch.saturating_add(first)));
    }
    let preamble = text(&source["preamble"]);
    let mut preamble = preamble.lines().filter(|line| !line.trim().is_empty());
    if let Some(first) = preamble.next() {
        lines.add("preamble", format!("{first}{}", if preamble.next().is_some() { " …" } else { "" }));
    }
    (R::LINES)(object, &mut lines);
    for loss in R::LOSSES {
        let count = number(&object["counts"][loss.key]);
        if count > 0 {
            lines.add(loss.name, format!("{}{}", human::count(count), loss.what));
        }
    }
    let warnings = object["warnings"].as_array().map_or(&[][..], Vec::as_slice);
    for warning in warnings.iter().take(MAX_NOTES) {
        lines.add("note", text(warning));
    }
    if warnings.len() > MAX_NOTES {
        lines.add("", format!("and {} more notes; --json shows all", warnings.len() - MAX_NOTES));
    }
    lines.0 + &(R::AFTER)(object)
}
