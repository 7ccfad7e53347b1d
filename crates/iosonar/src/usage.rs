//! Errors in the command line, which have a separate exit code.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::peers;

/// The command line is wrong; the text says how to correct it.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Like `bail!`, for an error in the command line.
macro_rules! misuse {
    ($($words:tt)*) => {
        return ::std::result::Result::Err($crate::usage::Usage(::std::format!($($words)*)).into())
    };
}

pub(crate) use misuse;

/// Refuses a pipe where a file is read more than once: its second reader waits forever, or finds nothing more. `what`
/// begins the sentence.
pub fn refuse_pipe(path: &Path, what: &str) -> anyhow::Result<()> {
    if path == Path::new("-") {
        misuse!("{what} several times and cannot take standard input: name a file");
    }
    if path.metadata().is_ok_and(|status| !status.is_file() && !status.is_dir()) {
        misuse!("{what} several times, and {} is not a regular file: name a file", path.display());
    }
    Ok(())
}

/// Whether the command line was wrong.
pub fn is_usage(error: &anyhow::Error) -> bool {
    use iosonar_files::replay::error::Error as FilesError;
    use iosonar_pacing::Error::{Trace, Usage as OfReplay};
    use iosonar_trace::Error::Usage as OfTrace;
    error.chain().any(|cause| {
        cause.is::<Usage>()
            || matches!(cause.downcast_ref(), Some(OfTrace(_)))
            || matches!(cause.downcast_ref(), Some(OfReplay(_) | Trace(OfTrace(_))))
            || matches!(cause.downcast_ref(), Some(FilesError::Usage(_) | FilesError::Replay(OfReplay(_))))
    })
}

/// The command that the words name, and the words of its name.
fn leaf<'a>(words: &[OsString], command_line: &'a clap::Command) -> (Vec<&'a str>, &'a clap::Command) {
    let (mut typed, mut leaf) = (vec!["iosonar"], command_line);
    for word in words.iter().skip(1) {
        let Some(next) = leaf.find_subcommand(word) else { break };
        typed.push(next.get_name());
        leaf = next;
    }
    (typed, leaf)
}

/// Lists the subcommands, unless a similar one is named.
fn with_subcommands(mut error: clap::Error, words: &[OsString], command_line: &clap::Command) -> clap::Error {
    // `iosonar help COMMAND …` is about the words after it.
    let from = usize::from(words.get(1).is_some_and(|word| word == "help"));
    let (_, leaf) = leaf(&words[from..], command_line);
    let shown = leaf.get_subcommands().filter(|of| !of.is_hide_set() && of.get_name() != "help");
    let names: Vec<&str> = shown.map(clap::Command::get_name).collect();
    if error.get(ContextKind::SuggestedSubcommand).is_none() && !names.is_empty() {
        let tip = format!("subcommands: {}", names.join(", "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Adds a tip to the refusal of an option of another program, or of a word that begins a command, if the subcommand expects
/// the command after `--`.
pub fn with_tip(mut error: clap::Error, words: &[OsString], command_line: &clap::Command) -> clap::Error {
    if error.kind() == ErrorKind::InvalidSubcommand {
        return with_subcommands(error, words, command_line);
    }
    let Some(ContextValue::String(refused)) = error.get(ContextKind::InvalidArg) else { return error };
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    if let Some(tip) = peers::tip(command, refused) {
        // A similar name means something else, also in the usage.
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    if refused.starts_with('-') {
        return error;
    }
    let (typed, leaf) = leaf(words, command_line);
    let mut positions = leaf.get_positionals();
    let is_command = |name: &clap::builder::Str| name == "COMMAND";
    if positions.any(|argument| {
        argument.is_last_set() && argument.get_value_names().is_some_and(|names| names.iter().any(is_command))
    }) {
        let from = words.iter().position(|word| word == refused.as_str()).unwrap_or(words.len());
        let command: Vec<_> = words[from..].iter().map(|word| word.to_string_lossy()).collect();
        let tip = format!("put `--` before the command: {} … -- {}", typed.join(" "), command.join(" "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}
