//! The curve as a picture, drawn by the Python half.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::programs::find;
use crate::usage::misuse;

/// The program that draws; it reads the object from standard input.
const DRAWS: &str = "cache-picture";

/// Refuses a name that is not that of a picture.
pub fn check(picture: &Path) -> Result<()> {
    let ending = picture.extension().and_then(OsStr::to_str);
    if !matches!(ending, Some("png" | "svg" | "pdf")) {
        misuse!("{} is no picture; name it FILE.png, FILE.svg or FILE.pdf", picture.display());
    }
    Ok(())
}

pub fn draw(object: &Value, picture: &Path) -> Result<()> {
    let Some(program) = find(OsStr::new(DRAWS)) else {
        bail!(
            "pictures need iosonar's Python half, which is not installed: no iosonar-{DRAWS} beside this binary or in PATH; \
             install the package iosonar-workbench, or run `pip install .` in \
             the source directory, or use --csv"
        );
    };
    let mut child = Command::new(&program)
        .arg("--")
        .arg(picture)
        .stdin(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if let Some(mut input) = child.stdin.take() {
        // A program that fails reads nothing and says why.
        _ = input.write_all(object.to_string().as_bytes());
    }
    if !child.wait()?.success() {
        bail!("cannot draw {}", picture.display());
    }
    Ok(())
}
