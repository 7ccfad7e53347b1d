//! Where the answer goes: the terminal, a table, a picture.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::found::Found;
use super::picture;
use crate::console::answer_json;
use crate::output_files;

#[derive(clap::Args)]
pub struct Output {
    /// Print a JSON object
    #[arg(long)]
    json: bool,

    /// Write the curve as a table of comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Draw the curve: FILE.png, FILE.svg or FILE.pdf; needs the Python half
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    #[command(flatten)]
    replacing: output_files::Replacing,
}

impl Output {
    /// Refuses files that cannot be written, before the work.
    pub fn check<'a>(&self, inputs: impl Iterator<Item = &'a PathBuf> + Clone) -> Result<()> {
        for output in self.csv.iter().chain(&self.picture) {
            self.replacing.allows(output)?;
            for input in inputs.clone() {
                output_files::refuse_same_file(input, output)?;
            }
        }
        self.picture.as_deref().map_or(Ok(()), picture::check)
    }

    pub fn put(&self, found: &Found) -> Result<()> {
        if let Some(csv) = &self.csv {
            self.write(csv, &found.csv)?;
        }
        if let Some(file) = &self.picture {
            picture::draw(&found.object, file)?;
        }
        if self.json {
            answer_json(&found.object)?;
        } else {
            crate::console::out!("{}", found.text.trim_end());
        }
        Ok(())
    }

    fn write(&self, path: &Path, text: &str) -> Result<()> {
        let mut file = self.replacing.begin(path)?;
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(file.finish()?)
    }
}
