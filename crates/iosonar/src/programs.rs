//! The external programs `iosonar-NAME`: finds them, and lists them in help, man pages and completions.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Arg, Command, ValueHint};

use crate::console::one_line;

/// A command of the Python half.
struct OfPython {
    name: &'static str,
    about: &'static str,
}

const PYTHON_HALF: [OfPython; 6] = [
    OfPython { name: "report", about: "Show runs or loads as diagrams, on a page or as pictures" },
    OfPython {
        name: "compare",
        about: "Compare runs: overlaid diagrams, latency differences with confidence intervals, and a summary",
    },
    OfPython { name: "sql", about: "Query runs and loads in SQL" },
    OfPython {
        name: "sweep",
        about: "Run a program at several depths, rates or working sets: throughput, response time, and the knee",
    },
    OfPython {
        name: "sensitivity",
        about: "Replay a load exactly and with degraded issue times: how much response times and queues change",
    },
    OfPython {
        name: "campaign",
        about: "Run a tree of replays on hosts and devices, one for each directory without subdirectories",
    },
];

/// In lists, the Python half's commands follow this one.
const BEFORE_PYTHON_HALF: &str = "replay";

/// The heading of the list of other programs.
const HEADING: &str = "Other programs iosonar-NAME:";

pub fn is_of_python(name: &OsStr) -> bool {
    PYTHON_HALF.iter().any(|of| name == of.name)
}

/// Finds the executable `iosonar-NAME`.
pub fn find(name: &OsStr) -> Option<PathBuf> {
    let mut file = OsString::from("iosonar-");
    file.push(name);
    folders().into_iter().map(|folder| folder.join(&file)).find(|file| is_executable(file))
}

/// The binary's own directory comes first: sudo drops a virtual environment from `PATH`.
fn folders() -> Vec<PathBuf> {
    let own = env::current_exe().ok().and_then(|exe| exe.parent().map(PathBuf::from));
    let path = env::var_os("PATH").unwrap_or_default();
    own.into_iter().chain(env::split_paths(&path)).collect()
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
            for of in &PYTHON_HALF {
                joined = joined.subcommand(of_python(of).display_order(position));
                position += 1;
            }
        }
    }
    joined
}

fn of_python(of: &OfPython) -> Command {
    let words = Arg::new("words").value_name("ARGUMENTS").num_args(0..).value_hint(ValueHint::FilePath);
    Command::new(of.name)
        .about(of.about)
        .disable_version_flag(true)
        .arg(words.help("Files and options of this command"))
        .after_help(format!("Part of iosonar's Python half. `iosonar {} --help` lists its options.", of.name))
}

/// Adds the installed programs to the list of commands.
pub fn list(joined: Command) -> Command {
    let mut listed = joined;
    for OfPython { name, about } in &PYTHON_HALF {
        if find(OsStr::new(name)).is_none() {
            let missing = format!("{about} (not installed: pip install .)");
            listed = listed.mut_subcommand(name, |of| of.about(missing));
        }
    }
    let own = |name: &OsStr| listed.get_subcommands().any(|of| name == of.get_name()) || name == "help";
    let others: BTreeMap<_, _> = all().into_iter().filter(|(name, _)| !own(name)).collect();
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
    for folder in folders() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
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
