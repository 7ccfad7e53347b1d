//! Runs `iosonar NAME` as the program `iosonar-NAME`: the Python half, and programs that users add.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::program::Program;
use crate::programs::{find, is_of_python};
use crate::topics;
use crate::usage::misuse;

/// The schema version of this binary; the Python half refuses another one.
const VERSION_VARIABLE: &str = "IOSONAR_SCHEMA_VERSION";

/// Replaces this process by the program (`exec`), which keeps its exit code and signals.
pub fn run(words: &[OsString], of: &Program) -> Result<ExitCode> {
    let (name, arguments) = words.split_first().context("no subcommand")?;
    let mut program = command(name, of)?;
    let error = program.args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {}", program.get_program().display()))
}

/// The program of the subcommand `name`, without arguments.
pub fn command(name: &OsStr, of: &Program) -> Result<Command> {
    let Some(program) = find(name) else {
        let name = name.to_string_lossy();
        if is_of_python(OsStr::new(&*name)) {
            bail!("{}", unknown(&name, of));
        }
        misuse!("{}", unknown(&name, of));
    };
    let mut command = Command::new(program);
    command.env(VERSION_VARIABLE, iosonar_trace::SCHEMA_VERSION.to_string());
    Ok(command)
}

/// The arguments of an external program, if the command line is `NAME …` or `help NAME`.
pub fn words(typed: &[OsString], of: &clap::Command) -> Option<Vec<OsString>> {
    let of_another = |name: &OsStr| {
        is_of_python(name) || (!name.as_encoded_bytes().starts_with(b"-") && of.find_subcommand(name).is_none())
    };
    match typed.get(1..)? {
        [help, name, ..] if help == "help" && name != "help" && of_another(name) => {
            Some(vec![name.clone(), "--help".into()])
        }
        [name, ..] if name != "help" && of_another(name) => Some(typed[1..].to_vec()),
        _ => None,
    }
}

fn unknown(name: &str, of: &Program) -> String {
    let near = nearest(name, of);
    if is_of_python(OsStr::new(name)) {
        format!(
            "`{name}` is part of iosonar's Python half, which is not installed: no iosonar-{name} beside this binary or in \
             PATH; install the package iosonar-workbench, or run `pip install .` in \
             the source directory"
        )
    } else if topics::has(name) {
        format!("no subcommand `{name}`; `iosonar help {name}` prints the tutorial")
    } else if near.is_empty() {
        format!("no subcommand `{name}`, and no program iosonar-{name} in PATH; `iosonar --help` lists the commands")
    } else {
        format!("no subcommand `{name}`, and no program iosonar-{name} in PATH; did you mean {}?", near.join(" or "))
    }
}

/// Similar subcommands, the most similar first.
fn nearest(name: &str, of: &Program) -> Vec<String> {
    let cli = (of.command_line)();
    let known = cli.get_subcommands().map(clap::Command::get_name);
    let mut rated: Vec<_> = known.map(|known| (strsim::jaro_winkler(name, known), known.to_owned())).collect();
    rated.retain(|(likeness, _)| *likeness >= 0.8);
    rated.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    rated.into_iter().map(|(_, known)| known).collect()
}
