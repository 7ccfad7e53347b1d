//! `iosonar man`: man pages, generated from the definition of the command line.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap_mangen::Man;

use crate::console::out;
use crate::program::Program;

/// Print the man page, or write the man pages of all subcommands
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar man | man -l -                      read
  iosonar man --out /usr/local/share/man/man1 install all pages")]
pub struct Args {
    /// Write iosonar.1 and an iosonar-NAME.1 for each subcommand into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace existing files, even other programs' man pages
    #[arg(long, requires = "out")]
    overwrite: bool,
}

impl Args {
    pub fn run(self, program: &Program) -> Result<ExitCode> {
        match self.out {
            Some(directory) => {
                for file in write_all(&directory, cli(program), self.overwrite)? {
                    out!("{}", file.display());
                }
            }
            None => io::stdout().write_all(page(cli(program)).as_bytes()).context("cannot print the man page")?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The command line without `help`, which needs no page.
fn cli(program: &Program) -> clap::Command {
    let mut cli = (program.command_line)().disable_help_subcommand(true);
    cli.build();
    cli
}

/// Writes all pages, or none if a file of another program exists.
fn write_all(directory: &Path, command_line: clap::Command, overwrite: bool) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let mut pages = Vec::new();
    let mut commands = vec![command_line];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|of| !of.is_hide_set()).cloned());
        let file = directory.join(Man::new(command.clone()).get_filename());
        if !overwrite && !may_be_replaced(&file).with_context(|| format!("cannot read {}", file.display()))? {
            bail!(
                "{} exists and is not a man page of iosonar; choose another directory, or replace it with --overwrite",
                file.display()
            );
        }
        pages.push((file, page(command)));
    }
    pages.sort();
    for (file, page) in &pages {
        fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(pages.into_iter().map(|(file, _)| file).collect())
}

/// Whether the file is missing or a page of an earlier version.
fn may_be_replaced(file: &Path) -> io::Result<bool> {
    // The title follows a line or two of macros.
    const TITLE_WITHIN: u64 = 1024;
    match fs::metadata(file) {
        Ok(status) if !status.is_file() => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        status => status?,
    };
    let mut beginning = Vec::new();
    File::open(file)?.take(TITLE_WITHIN).read_to_end(&mut beginning)?;
    let is_title = |line: &[u8]| line.starts_with(b".TH iosonar ") || line.starts_with(b".TH iosonar-");
    Ok(beginning.split(|&byte| byte == b'\n').any(is_title))
}

/// The page of one command; its examples and exit codes keep their line breaks.
fn page(mut command: clap::Command) -> String {
    // Without it, the page lists all options here, without values and also those required in brackets.
    let usage = command.render_usage().to_string();
    let command = command.override_usage(usage.trim_start_matches("Usage:").trim().to_owned());
    let mut page = Vec::new();
    Man::new(command).render(&mut page).expect("writing to memory does not fail");
    String::from_utf8(page)
        .expect("clap's texts are UTF-8")
        .replace(".SH EXTRA\n", ".SH NOTES\n.nf\n")
        .replace(".SH VERSION\n", ".fi\n.SH VERSION\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subcommand_and_the_program_have_a_page() {
        let directory = tempfile::tempdir().expect("a directory");
        write_all(directory.path(), cli(&crate::PROGRAM), false).expect("the pages are written");
        let page = fs::read_to_string(directory.path().join("iosonar.1")).expect("the main page");
        assert!(page.contains(".SH NOTES\n.nf\n"), "examples and exit codes keep their lines:\n{page}");
        let synopsis = |name: &str| {
            let page = fs::read_to_string(directory.path().join(name)).expect("a page");
            page.lines().skip_while(|line| *line != ".SH SYNOPSIS").nth(1).unwrap_or_default().replace('\\', "")
        };
        assert_eq!(synopsis("iosonar-ab.1"), "fBiosonar abfR [OPTIONS] --a <COMMAND> --b <COMMAND> --output <NAME.AB>");
        assert_eq!(synopsis("iosonar-recover.1"), "fBiosonar recoverfR [OPTIONS] <LEFT>");
        for subcommand in crate::command_line().get_subcommands().filter(|of| !of.is_hide_set()) {
            let file = directory.path().join(format!("iosonar-{}.1", subcommand.get_name()));
            assert!(file.is_file(), "{} is missing", file.display());
        }
    }
}
