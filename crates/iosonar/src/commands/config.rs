//! `iosonar config`: the values of options without a command line, and where each comes from.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Command;

use crate::console::out;
use crate::defaults::{self, Default, VARIABLE};
use crate::program::Program;
use crate::usage::misuse;

/// What `--edit` begins with.
const EMPTY: &str = "\
# Defaults of iosonar's options: a table for each command, an option by its long name. The command line wins.
# `iosonar config` lists all options that have a value.

# [replay]
# depth = 128
";

/// Show the defaults of options, and where each comes from
///
/// Defaults of your own are in $XDG_CONFIG_HOME/iosonar/config.toml (~/.config/iosonar/config.toml), in TOML: a table for
/// each command, such as `[replay]` or `[workload.run]`, with options by their long names. The command line wins. Results name
/// the options whose value came from there. IOSONAR_CONFIG names another file, or none if it is empty.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar config                          # the values of all commands, as TOML
  iosonar config workload run             # of one command
  iosonar config --edit
  IOSONAR_CONFIG= iosonar replay --help   # without the file")]
pub struct Args {
    /// Only this command
    #[arg(value_name = "COMMAND", conflicts_with_all = ["edit", "path"])]
    command: Vec<String>,

    /// Open the file in $VISUAL or $EDITOR, and check it afterwards
    #[arg(long, conflicts_with = "path")]
    edit: bool,

    /// Print the path of the file
    #[arg(long)]
    path: bool,
}

impl Args {
    pub fn run(self, program: &Program) -> Result<ExitCode> {
        let file = defaults::path();
        if self.path || self.edit {
            let Some(file) = file else { bail!("no file: {VARIABLE} is empty, or there is no home directory") };
            return if self.path { print(&file) } else { edit(&file, program) };
        }
        let command_line = (program.command_line)();
        let own = match defaults::read(&command_line) {
            Ok(own) => own,
            Err(why) => misuse!("{why}"),
        };
        let mut text = String::new();
        let from = file.map(|file| file.display().to_string()).unwrap_or_default();
        let mut names = Vec::new();
        let mut at = &command_line;
        for name in &self.command {
            let Some(below) = at.find_subcommand(name) else { misuse!("no command {name}; `iosonar help` lists them") };
            names.push(below.get_name().to_owned());
            at = below;
        }
        list(at, &names, &own, &from, &mut text);
        out!("{}", text.trim());
        Ok(ExitCode::SUCCESS)
    }
}

fn print(file: &Path) -> Result<ExitCode> {
    out!("{}", file.display());
    Ok(ExitCode::SUCCESS)
}

/// Runs the editor, then reads the file.
fn edit(file: &Path, program: &Program) -> Result<ExitCode> {
    if !file.exists() {
        let directory = file.parent().context("the file has no directory")?;
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        fs::write(file, EMPTY).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|editor| !editor.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".into());
    // An editor may have options: `code --wait`.
    let line = format!("{editor} \"$1\"");
    let status = process::Command::new("sh").arg0("iosonar").args(["-c", &line, "sh"]).arg(file).status();
    if !status.with_context(|| format!("cannot run {editor}"))?.success() {
        bail!("{editor} failed");
    }
    if let Err(why) = defaults::read(&(program.command_line)()) {
        misuse!("{why}");
    }
    print(file)
}

/// Options that have a value, of a command and those below it.
fn list(command: &Command, names: &[String], own: &[Default], from: &str, text: &mut String) {
    let mut lines = String::new();
    for option in defaults::options(command).filter(|option| !option.is_hide_set()) {
        let long = option.get_long().unwrap_or_default();
        let of_user = own.iter().find(|own| own.command == names && own.long == long);
        let takes_values = option.get_action().takes_values();
        let (values, origin) = match of_user {
            Some(own) => (own.values.clone(), from),
            None => {
                let built_in = option.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
                (built_in.collect(), "built in")
            }
        };
        if !values.is_empty() {
            let shown: Vec<String> =
                values.iter().map(|value| if takes_values { quoted(value) } else { value.clone() }).collect();
            let value = if shown.len() == 1 { shown.concat() } else { format!("[{}]", shown.join(", ")) };
            _ = writeln!(lines, "{:40} # {origin}", format!("{long} = {value}"));
        }
    }
    if !lines.is_empty() {
        _ = write!(text, "[{}]\n{lines}\n", names.join("."));
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        list(below, &[names, &[below.get_name().to_owned()]].concat(), own, from, text);
    }
}

/// As TOML: a number, or a text.
fn quoted(value: &str) -> String {
    let is_number = value.parse::<f64>().is_ok_and(f64::is_finite) && value.starts_with(|c: char| c.is_ascii_digit());
    // TOML has no numbers such as 007.
    let is_plain = value == "0" || !value.starts_with('0') || value.starts_with("0.");
    if is_number && is_plain && !value.ends_with('.') {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}
