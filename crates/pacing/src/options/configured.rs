//! Which options have a default of the user, from a configuration file.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use iosonar_trace::path_text;

/// The user's defaults of the command that runs: values as in the file, by the name of the option in clap. The program sets
/// them before it parses the command line.
pub static CONFIGURED: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Whether the value of an option is the user's default.
pub fn is_configured(option: &Arg, matches: &ArgMatches) -> bool {
    let id = option.get_id().as_str();
    // Another option may have set it.
    let raw = || matches.get_raw(id).into_iter().flatten().map(path_text).collect::<Vec<_>>().join(",");
    matches.value_source(id) == Some(ValueSource::DefaultValue)
        && CONFIGURED.get().and_then(|all| all.get(id)).is_some_and(|value| *value == raw())
}

/// The long names of the options of `command` whose value is the user's default.
pub fn configured(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let of_user = command.get_arguments().filter(|option| is_configured(option, matches));
    of_user.filter_map(|option| option.get_long().map(str::to_owned)).collect()
}
