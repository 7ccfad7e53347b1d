//! The external programs `iosonar-NAME`: finds them, and lists them in help, man pages and completions.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::{Arg, ArgAction, Command, ValueHint};
use serde::Deserialize;

use crate::console::one_line;

/// A command of the Python half, as its parser describes it; a test of that half keeps the copy up to date.
#[derive(Deserialize)]
struct PythonCommand {
    name: String,
    about: String,
    arguments: Vec<Argument>,
    options: Vec<Opt>,
    commands: Vec<PythonCommand>,
    after: String,
}

#[derive(Deserialize)]
struct Argument {
    value: String,
    help: String,
    required: bool,
}

#[derive(Deserialize)]
struct Opt {
    long: String,
    aliases: Vec<String>,
    short: Option<char>,
    /// The name of the value; none for a flag.
    value: Option<String>,
    values: Vec<String>,
    help: String,
    default: Option<String>,
    repeated: bool,
    required: bool,
}

static PYTHON_HALF: LazyLock<Vec<PythonCommand>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("python_half.json")).expect("a test of the Python half writes it")
});

/// In lists, the Python half's commands follow this one.
const BEFORE_PYTHON_HALF: &str = "replay";

/// Programs that other commands start; no list has them.
const INTERNAL: [&str; 2] = ["cache-picture", "scale-hosts"];

/// The heading of the list of other programs.
const HEADING: &str = "Other programs iosonar-NAME:";

pub fn is_of_python(name: &OsStr) -> bool {
    PYTHON_HALF.iter().any(|of| name == of.name.as_str())
}

/// Finds the executable `iosonar-NAME`.
pub fn find(name: &OsStr) -> Option<PathBuf> {
    let mut file = OsString::from("iosonar-");
    file.push(name);
    directories().into_iter().map(|directory| directory.join(&file)).find(|file| is_executable(file))
}

/// The binary's own directory comes first, as sudo drops a virtual environment from `PATH`; then that of the packages.
fn directories() -> Vec<PathBuf> {
    let own = env::current_exe().ok().and_then(|exe| exe.parent().map(PathBuf::from));
    let of_packages = own.as_ref().map(|own| own.join("../lib/iosonar/bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    own.into_iter().chain(of_packages).chain(env::split_paths(&path)).collect()
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0)
}

/// Adds the Python half's commands to the command line, installed or not.
pub fn join(own: Command) -> Command {
    let names: Vec<String> = own.get_subcommands().map(|of| of.get_name().to_owned()).collect();
    let mut joined = own;
    let mut position = 0;
    for name in names {
        joined = joined.mut_subcommand(&name, |of| of.display_order(position));
        position += 1;
        if name == BEFORE_PYTHON_HALF {
            for of in PYTHON_HALF.iter() {
                joined = joined.subcommand(python_command(of).display_order(position));
                position += 1;
            }
        }
    }
    joined
}

/// The command with its options, for completions and man pages; its own program parses them.
fn python_command(of: &'static PythonCommand) -> Command {
    let mut command = Command::new(of.name.as_str())
        .about(of.about.as_str())
        .after_help(of.after.as_str())
        .disable_version_flag(true)
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true);
    for of in &of.arguments {
        // `RUN...` is one or more values.
        let name = of.value.trim_matches(['<', '>', '[', ']', '.']);
        let (name, _) = name.split_once("...").unwrap_or((name, ""));
        let argument = Arg::new(of.value.as_str())
            .value_name(name.trim_end_matches(['<', '>', '[', ']']))
            .help(of.help.as_str())
            .value_hint(ValueHint::AnyPath);
        let argument = if of.value.contains("...") { argument.num_args(0..) } else { argument };
        // Arguments that are not required come last.
        command = command.arg(argument.required(of.required && !of.value.contains("...")));
    }
    for of in &of.options {
        let mut option = Arg::new(of.long.as_str()).long(of.long.as_str()).help(of.help.as_str()).required(of.required);
        option = option.visible_aliases(of.aliases.iter().map(String::as_str));
        option = match of.short {
            Some(short) => option.short(short),
            None => option,
        };
        option = match &of.value {
            None => option.action(ArgAction::SetTrue),
            Some(value) => {
                let hint = match value.as_str() {
                    "<DIR>" => ValueHint::DirPath,
                    "<FILE>" | "<PAGE>" | "<DEV>" | "<DEVICE>" => ValueHint::AnyPath,
                    _ => ValueHint::Unknown,
                };
                let option = option.value_name(value.trim_matches(['<', '>'])).value_hint(hint);
                let option = if of.repeated { option.action(ArgAction::Append) } else { option };
                match of.values.is_empty() {
                    true => option,
                    false => option.value_parser(of.values.iter().map(String::as_str).collect::<Vec<_>>()),
                }
            }
        };
        command = command.arg(match &of.default {
            Some(default) => option.default_value(default.as_str()),
            None => option,
        });
    }
    command.subcommands(of.commands.iter().map(python_command))
}

/// Adds the installed programs to the list of commands.
pub fn list(joined: Command) -> Command {
    let mut listed = joined;
    for PythonCommand { name, about, .. } in PYTHON_HALF.iter() {
        if find(OsStr::new(name)).is_none() {
            let missing = format!("{about} (not installed)");
            listed = listed.mut_subcommand(name, |of| of.about(missing));
        }
    }
    let own = |name: &OsStr| listed.get_subcommands().any(|of| name == of.get_name()) || name == "help";
    let is_internal = |name: &OsStr| INTERNAL.iter().any(|internal| name == *internal);
    let others: BTreeMap<_, _> = all().into_iter().filter(|(name, _)| !own(name) && !is_internal(name)).collect();
    if others.is_empty() {
        return listed;
    }
    let below = listed.get_after_help().map(ToString::to_string).unwrap_or_default();
    let width = others.keys().map(|name| shown(name).chars().count()).max().unwrap_or_default();
    let lines = others.iter().map(|(name, file)| format!("  {:width$}  {}\n", shown(name), shown(file.as_os_str())));
    listed.after_help(format!("{HEADING}\n{}\n{below}", lines.collect::<String>()))
}

/// All external programs, each with the path that would be run.
fn all() -> BTreeMap<OsString, PathBuf> {
    let mut found = BTreeMap::new();
    for directory in directories() {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            let file = entry.file_name();
            let Some(name) = file.as_bytes().strip_prefix(b"iosonar-").filter(|name| !name.is_empty()) else {
                continue;
            };
            if is_executable(&entry.path()) {
                found.entry(OsStr::from_bytes(name).to_owned()).or_insert_with(|| entry.path());
            }
        }
    }
    found
}

fn shown(name: &OsStr) -> String {
    one_line(&iosonar_trace::path_text(name))
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    /// The options of all commands of the Python half, with those of `campaign report`.
    #[test]
    fn completions_and_man_pages_have_the_python_options() {
        let options = ["working-sets", "bad-latency", "overwrite", "fail-on", "stop-on-failure", "junit", "parameter"];
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut crate::command_line(), "iosonar", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(options.iter().all(|option| script.contains(option)), "{shell}");
            assert!(!script.contains("ARGUMENTS"), "{shell}");
        }
    }

    #[test]
    fn the_command_line_with_the_python_half_is_consistent() {
        crate::command_line().debug_assert();
    }
}
