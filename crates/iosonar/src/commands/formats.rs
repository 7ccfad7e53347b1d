//! `iosonar formats`: the formats of loads and runs, and how to describe another one.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Result;
use iosonar_trace::formats::described::{self, ColumnOptions, bundled, keys};
use iosonar_trace::formats::{FORMATS, Format, TestedWith};
use iosonar_trace::params::{Key, Takes, did_you_mean};

use crate::usage::{Usage, misuse};

/// List the formats of traces, and how to describe another one
///
/// `iosonar convert` and every command that takes a load recognise these formats by content; --from NAME names one. Some are
/// descriptions in TOML: print one, change it, and read your trace by `iosonar convert --description COPY.toml`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar formats                            # all formats
  iosonar formats k5cloud > mine.toml        # the description of one, to change it
  iosonar formats --keys                     # the keys of descriptions
  iosonar formats --columns 'at=1:us op=3 offset=4 size=5' > mine.toml")]
pub struct Args {
    /// The format whose description to print
    #[arg(value_name = "NAME", conflicts_with_all = ["keys", "columns"])]
    name: Option<String>,

    /// List the keys of descriptions
    #[arg(long, conflicts_with = "columns")]
    keys: bool,

    /// Print the description that `iosonar convert --columns` makes of this
    #[arg(long, value_name = "FIELD=COLUMN…")]
    columns: Option<String>,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let text = match (self.name, self.columns) {
            (Some(name), _) => description(&name)?.to_owned(),
            (None, Some(columns)) => {
                described::toml_of(&ColumnOptions { columns, ..ColumnOptions::default() }).map_err(Usage)?
            }
            (None, None) if self.keys => keys_text(),
            (None, None) => list(),
        };
        io::stdout().lock().write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn description(name: &str) -> Result<&'static str> {
    if let Some((_, text)) = bundled::TEXTS.iter().find(|(bundled, _)| *bundled == name) {
        return Ok(text);
    }
    if FORMATS.iter().any(|format| format.name == name) {
        misuse!("{name} is built in; the formats by description are {}", names().collect::<Vec<_>>().join(" "));
    }
    misuse!("unknown format {name}; {}", did_you_mean(name, names()))
}

fn names() -> impl Iterator<Item = &'static str> + Clone {
    bundled::TEXTS.iter().map(|(name, _)| *name)
}

fn list() -> String {
    let width = FORMATS.iter().map(|format| format.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for format in FORMATS {
        _ = writeln!(text, "{:width$}  {}{}", format.name, format.title, qualities(format));
    }
    text
}

/// Whether it is also written, and what its reader was tested with.
fn qualities(format: &Format) -> String {
    let mut qualities = Vec::new();
    if format.create_load.is_some() {
        let also = if format.is_for_viewers { "only" } else { "also" };
        qualities.push(format!("{also} written: {}", format.extensions.join(" ")));
    }
    if bundled::TEXTS.iter().any(|(name, _)| *name == format.name) {
        qualities.push("by description".to_owned());
    }
    if format.tested_with != TestedWith::RealFiles && !format.is_for_viewers {
        qualities.push("unverified".to_owned());
    }
    if qualities.is_empty() { String::new() } else { format!(" ({})", qualities.join(", ")) }
}

fn keys_text() -> String {
    let mut text =
        "A description has these keys; fields are tables: offset = { column = 4, unit = \"sectors\" }\n".to_owned();
    keys::DESCRIPTION.iter().for_each(|key| add_key(&mut text, key));
    text += "\nKeys of each field:\n";
    keys::of_all_fields().iter().for_each(|key| add_key(&mut text, key));
    for (names, own) in fields_by_keys() {
        _ = writeln!(text, "\nFurther keys of {}:", names.join(", "));
        own.iter().for_each(|key| add_key(&mut text, key));
    }
    text + SHORT
}

/// The end of the keys.
const SHORT: &str = "
The same in --columns, as FIELD=COLUMN(WORDS):UNIT; blanks in a name need quotes:
  at=1:us                 at=1:us,before         at=1:ns,x0.4           at=Time:date
  op=3                    op=3(R=read,*=skip)    op=always:read         only=2(D,Q)
  offset=4:sectors        offset=4:4k,hex        size='Size (B)'        size=always:4k
  device=2                device=2:major:minor   device=2 minor=3       comm=-1
";

/// The fields that have keys of their own, with these; those with the same keys together.
fn fields_by_keys() -> Vec<(Vec<&'static str>, Vec<&'static Key>)> {
    let mut fields: Vec<(Vec<&str>, Vec<&Key>)> = Vec::new();
    for key in keys::DESCRIPTION {
        let Takes::Table(all) = key.takes else { continue };
        let common = |key: &&Key| keys::of_all_fields().iter().any(|common| common.name == key.name);
        let own: Vec<&Key> = all.iter().filter(|key| !common(key)).collect();
        match fields.iter_mut().find(|(_, known)| *known == own) {
            Some((names, _)) => names.push(key.name),
            None if own.is_empty() => {}
            None => fields.push((vec![key.name], own)),
        }
    }
    fields
}

fn add_key(text: &mut String, key: &Key) {
    const WIDTH: usize = 14;
    const COLUMNS: usize = 100;
    let mut line = format!("  {:WIDTH$}", key.name);
    for word in key.help.split_whitespace() {
        if line.len() + 1 + word.len() > COLUMNS {
            _ = writeln!(text, "{line}");
            line = format!("  {:WIDTH$}", "");
        }
        _ = write!(line, " {word}");
    }
    _ = writeln!(text, "{line}");
}
