//! The file beside a growing table of calls, `.NAME.XXXXXX.partial.held`: calls that wait for an earlier one to end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use iosonar_trace::{Error, Result};

/// Its name. It is removed when dropped, unless the hidden file of the table stays.
pub struct HeldFile {
    path: PathBuf,
    table: PathBuf,
}

impl HeldFile {
    /// Creates the file for the table with this hidden name.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(table: &Path) -> Result<(Self, File)> {
        let path = held_path(table);
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|e| Error::io(&path, e))?;
        Ok((Self { path, table: table.to_owned() }, file))
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        if !self.table.exists() {
            // Nothing reads it without its table.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The name of the file for the table with this hidden name.
pub fn held_path(table: &Path) -> PathBuf {
    let mut name = table.as_os_str().to_owned();
    name.push(".held");
    name.into()
}
