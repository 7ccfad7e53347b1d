//! The help for people: commands in groups by task, and a `-h` that fits on a screen.

use clap::{Arg, Command};

/// The commands by task, in the order of the help. Each command is in one group.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["demo", "doctor", "config", "help", "man", "completions"]),
    ("Make a load", &["record", "convert", "formats", "edit", "generate", "workload"]),
    ("Replay", &["replay", "files", "device", "recover"]),
    ("Look", &["info", "report", "view", "diagnose", "sql", "limit", "cache"]),
    ("Decide", &["compare", "ab", "check", "sensitivity"]),
    ("Many runs", &["sweep", "campaign"]),
];

/// What `-h` shows of commands with many options, by the name of the argument; `--help` shows all. Other commands show all
/// in both.
const COMMON: [(&str, &[&str]); 4] = [
    (
        "replay",
        &[
            "load",
            "edit",
            "output",
            "targets",
            "force",
            "start",
            "duration",
            "speedup",
            "asap",
            "repeat",
            "program",
            "depth",
            "wait",
            "engine",
            "simulate",
            "overwrite",
        ],
    ),
    (
        "workload run",
        &[
            "program",
            "set",
            "scale",
            "targets",
            "output",
            "run_for",
            "force",
            "depth",
            "simulate",
            "virtual_time",
            "overwrite",
        ],
    ),
    ("files replay", &["trace", "root", "output", "overwrite", "order", "timing", "instances", "wait", "fake_io"]),
    ("files scale", &["trace", "root", "output", "overwrite", "instances"]),
];

/// Lines of examples in `-h`, with their heading.
const EXAMPLES: usize = 5;

/// A text below the options with more lines is not in `-h`.
const LONG: usize = 30;

/// The commands in their groups, instead of clap's one list.
pub fn grouped(command: Command) -> Command {
    let width = names().map(str::len).max().unwrap_or_default();
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text += &format!("{heading}:\n");
        for name in names {
            let about = match command.find_subcommand(name).and_then(Command::get_about) {
                Some(about) if *name != "help" => about.to_string(),
                _ => "Print this message, the help of a command, or a tutorial".to_owned(),
            };
            text += &format!("  {name:width$}  {about}\n");
        }
        text.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}{{after-help}}"
    ))
}

/// All commands.
fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// Shortens `-h` of each command: the common options and the examples.
pub fn short(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|of| of.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| command.mut_subcommand(name, |of| shortened(of, name)))
}

/// In `-h`, the first clause of the help.
fn brief(arg: Arg) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let end = [". ", "; ", " ["].into_iter().filter_map(|at| help.find(at)).min();
    match (end, arg.get_long_help()) {
        (Some(end), None) => arg.help(help[..end].to_owned()).long_help(help),
        (Some(end), Some(_)) => arg.help(help[..end].to_owned()),
        (None, _) => arg,
    }
}

fn shortened(command: Command, path: &str) -> Command {
    let common = COMMON.iter().find(|(of, _)| *of == path).map(|(_, common)| *common);
    let mut command = match common {
        Some(common) => command.mut_args(|arg| {
            let is_common = common.contains(&arg.get_id().as_str());
            brief(arg).hide_short_help(!is_common)
        }),
        None => command,
    };
    let is_long = |text: &String| common.is_some() || text.lines().count() > LONG;
    if let Some(all) = command.get_after_help().map(ToString::to_string).filter(is_long) {
        let examples = all.split("\n\n").find(|part| part.starts_with("Example")).unwrap_or_default();
        let examples: Vec<&str> = examples.lines().take(EXAMPLES).collect();
        let gap = if examples.is_empty() {
            ""
        } else {
            "

"
        };
        let brief = format!(
            "{}{gap}All options and examples: iosonar {path} --help",
            examples.join(
                "
"
            )
        );
        command = command.after_help(brief).after_long_help(all);
    }
    let names: Vec<String> = command.get_subcommands().map(|of| of.get_name().to_owned()).collect();
    names
        .iter()
        .fold(command, |command, name| command.mut_subcommand(name, |of| shortened(of, &format!("{path} {name}"))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::programs;

    #[test]
    fn each_command_is_in_one_group_and_fits_on_a_line() {
        let command = crate::command_line();
        let shown = command.get_subcommands().filter(|of| !of.is_hide_set());
        let all: BTreeSet<&str> = shown.map(Command::get_name).chain(["help"]).collect();
        let listed: Vec<&str> = names().collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), all);
        assert_eq!(listed.len(), all.len());
        for of in command.get_subcommands() {
            let about = of.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.chars().count() <= 65, "{}: {about}", of.get_name());
        }
    }

    #[test]
    fn the_names_of_common_options_exist() {
        for (path, names) in COMMON {
            let command =
                path.split(' ').try_fold(&crate::command_line(), |at, name| at.find_subcommand(name)).cloned();
            let command = command.unwrap_or_else(|| panic!("no command {path}"));
            for name in names {
                assert!(command.get_arguments().any(|arg| arg.get_id() == *name), "{path} has no {name}");
            }
        }
    }

    #[test]
    fn short_help_fits_on_a_screen() {
        fn check(command: &mut Command, path: &str) {
            let lines = command.render_help().to_string().lines().count();
            assert!(lines <= 65, "{path} -h has {lines} lines");
            // The Python half prints the help of its own commands.
            for of in command.get_subcommands_mut().filter(|of| !programs::is_of_python(of.get_name().as_ref())) {
                let path = format!("{path} {}", of.get_name());
                check(of, &path);
            }
        }
        let mut command = crate::command_line();
        command.build();
        check(&mut command, "iosonar");
    }
}
