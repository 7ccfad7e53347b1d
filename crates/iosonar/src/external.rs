//! Hands `iosonar NAME` to the program `iosonar-NAME`: the Python half, and whatever users add.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::CommandFactory;

/// Tells the other half which version of the tables this one speaks, so that it can refuse another.
const VERSION_VARIABLE: &str = "IOSONAR_SCHEMA_VERSION";

/// Runs the program in place of this one, so that its exit code and signals are its own.
pub fn run(words: &[OsString]) -> Result<ExitCode> {
    let (name, arguments) = words.split_first().context("no subcommand")?;
    let mut program = command(name)?;
    let error = program.args(arguments).exec();
    Err(error).with_context(|| format!("can't run {}", program.get_program().display()))
}

/// The program for the subcommand `name`, ready to be given its arguments.
pub fn command(name: &OsStr) -> Result<Command> {
    let Some(program) = find(name) else {
        bail!("{}", unknown(&name.to_string_lossy()));
    };
    let mut command = Command::new(program);
    command.env(VERSION_VARIABLE, iosonar_trace::SCHEMA_VERSION.to_string());
    Ok(command)
}

/// This binary's own folder first: sudo drops a virtual environment from the path.
fn find(name: &OsStr) -> Option<PathBuf> {
    let mut file = OsString::from("iosonar-");
    file.push(name);
    let own = env::current_exe().ok().and_then(|exe| exe.parent().map(PathBuf::from));
    let path = env::var_os("PATH").unwrap_or_default();
    own.into_iter().chain(env::split_paths(&path)).map(|folder| folder.join(&file)).find(|file| is_executable(file))
}

fn is_executable(file: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn unknown(name: &str) -> String {
    let near = nearest(name);
    if PYTHON_HALF.contains(&name) {
        format!(
            "`{name}` belongs to iosonar's Python half, and iosonar-{name} is neither beside this binary nor on the \
             path; install it with `pip install .` in the source folder"
        )
    } else if near.is_empty() {
        format!(
            "no subcommand `{name}`, and no program iosonar-{name} on the path; `iosonar --help` lists what there is"
        )
    } else {
        format!(
            "no subcommand `{name}`, and no program iosonar-{name} on the path; did you mean {}?",
            near.join(" or ")
        )
    }
}

/// The known names that are most like this one, the likeliest first.
fn nearest(name: &str) -> Vec<String> {
    let cli = crate::Cli::command();
    let known = cli.get_subcommands().map(clap::Command::get_name).chain(PYTHON_HALF);
    let mut rated: Vec<_> = known.map(|known| (strsim::jaro_winkler(name, known), known.to_owned())).collect();
    rated.retain(|(likeness, _)| *likeness >= 0.8);
    rated.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    rated.into_iter().map(|(_, known)| known).collect()
}

/// Subcommands that the Python half brings.
const PYTHON_HALF: [&str; 3] = ["report", "compare", "sql"];
