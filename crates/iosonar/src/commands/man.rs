//! `iosonar man`: the man pages, made from the same definition as the help.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;

/// Print the man page, or write those of all subcommands
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar man | man -l -                      read it
  iosonar man --out /usr/local/share/man/man1 install it, with a page for each subcommand")]
pub struct Args {
    /// Write iosonar.1 and an iosonar-NAME.1 for each subcommand into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        match self.out {
            Some(folder) => {
                for file in write_all(&folder)? {
                    writeln!(io::stdout(), "{}", file.display())?;
                }
            }
            None => io::stdout().write_all(page(cli()).as_bytes()).context("can't print the man page")?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The whole command line, but for `help`: a page that says that it prints help is no help.
fn cli() -> clap::Command {
    let mut cli = crate::Cli::command().disable_help_subcommand(true);
    cli.build();
    cli
}

fn write_all(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| format!("can't make the folder {}", folder.display()))?;
    let mut files = Vec::new();
    let mut commands = vec![cli()];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|of| !of.is_hide_set()).cloned());
        let file = folder.join(Man::new(command.clone()).get_filename());
        fs::write(&file, page(command)).with_context(|| format!("can't write {}", file.display()))?;
        files.push(file);
    }
    files.sort();
    Ok(files)
}

/// The page of one command; what stands below its help keeps its lines as they are.
fn page(command: clap::Command) -> String {
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
    fn there_is_a_page_for_each_subcommand_and_one_for_all() {
        let folder = tempfile::tempdir().expect("a folder");
        write_all(folder.path()).expect("the pages are written");
        let page = fs::read_to_string(folder.path().join("iosonar.1")).expect("the main page");
        assert!(page.contains(".SH NOTES\n.nf\n"), "examples and exit codes keep their lines:\n{page}");
        for subcommand in crate::Cli::command().get_subcommands() {
            let file = folder.path().join(format!("iosonar-{}.1", subcommand.get_name()));
            assert!(file.is_file(), "{} is missing", file.display());
        }
    }
}
