//! The user's defaults: a file in TOML with a table for each command, such as `[replay]` with `depth = 128`.
//!
//! The definition of each command's options is the only list of them. A value becomes the default of its option, so the
//! command line wins; a typed option that excludes another suspends its default. The Python half reads the same file.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};
use iosonar_pacing::options::configured::CONFIGURED;
use iosonar_trace::params::{Text, did_you_mean};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::usage::misuse;

/// Names another file, or an empty text for none.
pub const VARIABLE: &str = "IOSONAR_CONFIG";

/// What is decided anew for each run: what a replay destroys.
const NEVER: [&str; 4] = ["force", "target", "root", "output"];

/// Commands that work with a wrong file, to mend it.
const WITHOUT: [&str; 4] = ["config", "help", "man", "completions"];

/// A default of the user: the words of the command, the option, and its values as they would be typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Default {
    pub command: Vec<String>,
    /// Its name in clap.
    pub id: String,
    pub long: String,
    pub values: Vec<String>,
}

/// The path of the file, whether it exists or not; `None` without a home directory, or if the user wants none.
pub fn path() -> Option<PathBuf> {
    if let Some(path) = env::var_os(VARIABLE) {
        return (!path.is_empty()).then(|| path.into());
    }
    let named = |name| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    // The specification of XDG_CONFIG_HOME ignores relative paths.
    let directory = named("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let directory = directory.or_else(|| named("HOME").map(|home| home.join(".config")))?;
    Some(directory.join("iosonar/config.toml"))
}

/// The defaults in the file; none if there is no file.
pub fn read(command_line: &Command) -> Result<Vec<Default>, String> {
    let Some(path) = path() else { return Ok(Vec::new()) };
    match fs::read_to_string(&path) {
        Ok(text) => parse(&path.to_string_lossy(), &text, command_line),
        // A file that is named must exist.
        Err(_) if env::var_os(VARIABLE).is_none() && !may_exist(&path) => Ok(Vec::new()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Whether the file may exist. One in a directory that this user cannot search, as with HOME=/root, counts as missing.
fn may_exist(path: &Path) -> bool {
    let missing = [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::PermissionDenied];
    fs::metadata(path).map_or_else(|error| !missing.contains(&error.kind()), |_| true)
}

/// The command line with the user's defaults, for a command line as typed.
///
/// # Errors
/// If the file is wrong, unless the command line only prints help or the version.
pub fn apply(command_line: Command, words: &[OsString]) -> Result<Command> {
    let first = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    if WITHOUT.contains(&first) {
        return Ok(command_line);
    }
    let mut defaults = match read(&command_line) {
        Ok(defaults) => defaults,
        Err(_) if is_for_help(&command_line, words) => return Ok(command_line),
        Err(why) => misuse!("{why}"),
    };
    defaults.retain(|default| !is_excluded(&command_line, default, words));
    let of_this = defaults.iter().filter(|default| {
        let typed = words[1..].iter().filter_map(|word| word.to_str());
        typed.take(default.command.len()).eq(default.command.iter().map(String::as_str))
    });
    let by_id: BTreeMap<_, _> = of_this.map(|default| (default.id.clone(), default.values.join(","))).collect();
    CONFIGURED.get_or_init(|| by_id);
    Ok(defaults.into_iter().fold(command_line, |command, default| {
        let Default { command: names, id, values, .. } = default;
        with_default(command, &names, &id, &values)
    }))
}

/// Whether the command line prints help or the version, which needs no defaults.
fn is_for_help(command_line: &Command, words: &[OsString]) -> bool {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    let parsed = command_line.clone().try_get_matches_from(words);
    parsed.is_err_and(|error| {
        matches!(error.kind(), DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand | DisplayVersion)
    })
}

/// Whether one of these words is an option that excludes that of the default.
fn is_excluded(command_line: &Command, default: &Default, words: &[OsString]) -> bool {
    let command = default.command.iter().try_fold(command_line, |command, name| command.find_subcommand(name));
    let Some(command) = command else { return false };
    let excludes = |one: &Arg, other: &Arg| command.get_arg_conflicts_with(one).contains(&other);
    let option = command.get_arguments().find(|option| option.get_id() == default.id.as_str());
    option.is_some_and(|option| {
        let others = command.get_arguments().filter(|other| excludes(option, other) || excludes(other, option));
        others.into_iter().any(|other| is_typed(other, words))
    })
}

fn is_typed(option: &Arg, words: &[OsString]) -> bool {
    let aliases = option.get_all_aliases().unwrap_or_default();
    let longs: Vec<String> = option.get_long().into_iter().chain(aliases).map(|long| format!("--{long}")).collect();
    let short = option.get_short().map(|short| format!("-{short}"));
    words.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--").any(|word| {
        let name = word.split('=').next().unwrap_or_default();
        longs.iter().any(|long| long == name) || short.as_ref().is_some_and(|short| word.starts_with(short))
    })
}

fn with_default(command: Command, names: &[String], id: &str, values: &[String]) -> Command {
    match names.split_first() {
        Some((name, below)) => command.mut_subcommand(name, |of| with_default(of, below, id, values)),
        // Once for each process, which ends soon: clap keeps only texts that live as long as the program.
        None => {
            let values: Vec<&'static str> = values.iter().map(|value| &*value.clone().leak()).collect();
            command.mut_arg(id, |option| option.required(false).default_values(values))
        }
    }
}

fn parse(file: &str, source: &str, command_line: &Command) -> Result<Vec<Default>, String> {
    let text = Text { file, source, set: None, origins: None };
    let table = text.parse()?;
    let mut all = Vec::new();
    for (name, value) in table.get_ref() {
        let (at, name) = (name.span().start, name.get_ref().as_ref());
        let Some(command) = command_line.find_subcommand(name) else {
            let known = names_below(command_line);
            let why = format!("no such command; {}", did_you_mean(name, known.iter().copied()));
            return Err(text.error(at, name, &why));
        };
        let DeValue::Table(options) = value.get_ref() else {
            return Err(text.error(at, name, &format!("options of a command are in a table, [{name}]")));
        };
        of_command(&text, command, &[name.to_owned()], options, &mut all)?;
    }
    Ok(all)
}

fn names_below(command: &Command) -> Vec<&str> {
    command.get_subcommands().map(Command::get_name).collect()
}

/// The defaults in the table of a command, and in those of the commands below it.
fn of_command(
    text: &Text<'_>,
    command: &Command,
    names: &[String],
    table: &DeTable<'_>,
    all: &mut Vec<Default>,
) -> Result<(), String> {
    for (key, value) in table {
        let (at, key) = (key.span().start, key.get_ref().as_ref());
        let below = [names, &[key.to_owned()]].concat();
        let what = below.join(".");
        if let (Some(command), DeValue::Table(options)) = (command.find_subcommand(key), value.get_ref()) {
            of_command(text, command, &below, options, all)?;
            continue;
        }
        let long = key.replace('_', "-");
        let Some(option) = options(command).find(|option| option.get_long() == Some(&long)) else {
            let known: Vec<&str> = options(command).filter_map(Arg::get_long).chain(names_below(command)).collect();
            let why = format!("no such option; {}", did_you_mean(&long, known.iter().copied()));
            return Err(text.error(at, &what, &why));
        };
        if NEVER.contains(&long.as_str()) {
            return Err(text.error(at, &what, "no default: name it in each command line"));
        }
        let values = values(text, option, value).map_err(|why| text.error(at, &what, &why))?;
        all.push(Default { command: names.to_vec(), id: option.get_id().to_string(), long, values });
    }
    Ok(())
}

/// Those that a default can be given for.
pub fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|option| option.get_long().is_some() && !matches!(option.get_id().as_str(), "help" | "version"))
}

/// The value as it would be typed, if the option accepts it.
fn values(text: &Text<'_>, option: &Arg, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, String> {
    if !option.get_action().takes_values() {
        return match value.get_ref() {
            DeValue::Boolean(flag) => Ok(vec![flag.to_string()]),
            _ => Err("expected true or false".into()),
        };
    }
    let is_list = matches!(option.get_action(), ArgAction::Append) || option.get_value_delimiter().is_some();
    let values = match value.get_ref() {
        DeValue::Array(values) if is_list => {
            values.iter().map(|one| text.scalar(one)).collect::<Result<Vec<_>, _>>()?
        }
        _ => vec![text.scalar(value)?],
    };
    // The same parser, as an option of its own.
    let mut alone = Arg::new("value").value_parser(option.get_value_parser().clone()).allow_hyphen_values(true);
    alone = option.get_value_delimiter().into_iter().fold(alone, Arg::value_delimiter);
    let command = Command::new("x").disable_help_flag(true).arg(alone.num_args(1..));
    let typed = [String::from("x")].into_iter().chain(values.iter().cloned());
    match command.try_get_matches_from(typed) {
        Ok(_) => Ok(values),
        Err(error) => {
            let text = error.to_string();
            let why = text.lines().next().unwrap_or_default();
            let why =
                why.trim_start_matches("error: ").replace(" for '[value]...'", "").replace(" for '<value>...'", "");
            match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(valid)) => Err(format!("{why}; possible values: {}", valid.join(", "))),
                _ => Err(why),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Default>, String> {
        parse("f", text, &crate::command_line())
    }

    fn refused(text: &str) -> String {
        parsed(text).unwrap_err()
    }

    #[test]
    fn options_of_every_command_can_have_defaults() {
        let text = "[replay]\ndepth = 128\nspeedup = 0.5\nasap = true\nisolate = ['priority', 'awake']\n\
                    [workload.run]\nset = ['rate=5']\n[campaign.new]\nrepeats = 3\n[report]\nsize = '4k'\n";
        let found = parsed(text).unwrap();
        let mut found: Vec<_> =
            found.iter().map(|of| format!("{} --{} {}", of.command.join(" "), of.long, of.values.join(" "))).collect();
        found.sort();
        let expected = [
            "campaign new --repeats 3",
            "replay --asap true",
            "replay --depth 128",
            "replay --isolate priority awake",
            "replay --speedup 0.5",
            "report --size 4k",
            "workload run --set rate=5",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest_one() {
        assert_eq!(refused("\n[replai]\n"), "f:2: replai: no such command; did you mean replay?");
        assert_eq!(refused("[replay]\ndepht = 3\n"), "f:2: replay.depht: no such option; did you mean depth?");
        for far in ["threads", "treads"] {
            let why = refused(&format!("[replay]\n{far} = 3\n"));
            assert!(why.starts_with(&format!("f:2: replay.{far}: no such option; known: ")), "{why}");
        }
        assert_eq!(refused("[campaign.statsu]\n"), "f:1: campaign.statsu: no such option; did you mean status?");
        assert!(refused("depth = 3\n").starts_with("f:1: depth: no such command; "));
        assert_eq!(refused("replay = 3\n"), "f:1: replay: options of a command are in a table, [replay]");
    }

    #[test]
    fn wrong_values_are_refused_as_on_the_command_line() {
        let why = refused("[replay]\ndepth = 'x'\n");
        assert!(why.starts_with("f:2: replay.depth: invalid value 'x'"), "{why}");
        let why = refused("[replay]\nwait = 'slow'\n");
        assert_eq!(why, "f:2: replay.wait: invalid value 'slow'; possible values: spin, hybrid, sleep, inline");
        assert_eq!(refused("[replay]\nasap = 1\n"), "f:2: replay.asap: expected true or false");
        assert!(refused("[replay]\ndepth = \n").starts_with("f:2: "));
        assert!(refused("[replay]\ndepth = [1, 2]\n").contains("found array"));
    }

    #[test]
    fn what_a_replay_destroys_has_no_default() {
        for (command, name) in NEVER.map(|name| (if name == "root" { "files.replay" } else { "replay" }, name)) {
            let why = refused(&format!("[{command}]\n{name} = 'x'\n"));
            assert!(why.ends_with(": no default: name it in each command line"), "{why}");
        }
    }
}
