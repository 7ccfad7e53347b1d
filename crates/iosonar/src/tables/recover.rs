//! `recover` of any rows.

use std::io;
use std::path::Path;

use anyhow::{Result, bail};
use iosonar_trace::output::give_name;
use iosonar_trace::system_text;

use super::described::Described;
use super::opened::Opened;
use crate::console::out;
use crate::human;
use crate::progress::Rows;

/// A result made from a journal.
pub struct Recovered {
    /// Warnings about it, one sentence each.
    pub warnings: Vec<String>,
    /// The closing statistics, for people.
    pub statistics: String,
}

/// Gives the hidden file of a killed recording its name, if all of it can be read.
pub fn name<R: Described>(mut file: Opened<R>, hidden: &Path, output: &Path) -> Result<()> {
    let rows = match R::rejoin(hidden, output)? {
        Some(rows) => rows,
        None => {
            let mut progress = Rows::of(&format!("reading {}", file.name), R::NOUN);
            while file.rows.next()?.is_some() {
                progress.row(|| file.rows.progress());
            }
            let rows = progress.finish();
            if let Err(error) = give_name(hidden, output) {
                let advice = match error.kind() {
                    io::ErrorKind::CrossesDevices => {
                        "; they are on different file systems: recover without --output, then move the file (mv)"
                    }
                    _ => "",
                };
                let (from, to) = (hidden.display(), output.display());
                bail!("cannot rename {from} to {to}: {}{advice}", system_text(&error));
            }
            rows
        }
    };
    out!("{}: {} before it was cut short", output.display(), human::counted(rows, R::NOUN));
    Ok(())
}
