//! `iosonar`: record real storage I/O, replay it on any device, see what the storage did.
//!
//! Each subcommand is a file under `commands/`; any other name runs the program `iosonar-NAME`.

mod causes;
mod commands;
mod console;
mod defaults;
mod duration;
mod end_conditions;
mod external;
mod fio;
mod hang;
mod help;
mod human;
mod live;
mod output_files;
mod paint;
mod peers;
mod program;
mod programs;
mod progress;
mod signals;
mod statistics;
mod supervised;
mod tables;
mod topics;
mod usage;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;
use std::{env, io, panic, process};

use clap::{CommandFactory, FromArgMatches, Parser};
use iosonar_trace::system_text;

use crate::commands::Command;
use crate::console::{out, status};
use crate::program::Program;

/// The version, and the commit in a build for release: by `make`, or by the build script.
const VERSION: &str = match option_env!("IOSONAR_VERSION") {
    Some(text) => text,
    None => env!("CARGO_PKG_VERSION"),
};

/// Record real storage I/O, replay it on any device with microsecond fidelity, and see what the storage did.
#[derive(Parser)]
#[command(name = "iosonar", version = VERSION, propagate_version = true, max_term_width = 100, after_help = commands::AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// For commands that need the whole program.
const PROGRAM: Program = Program { command_line, run: |words| parse(words)?.run(&PROGRAM) };

/// All subcommands with their options, and the names of the Python half's subcommands.
fn command_line() -> clap::Command {
    help::short(programs::join(Cli::command()))
}

fn parse(mut words: Vec<OsString>) -> anyhow::Result<Command> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand as Missing};
    if matches!(words.as_slice(), [_, help, option] if help == "help" && (option == "-h" || option == "--help")) {
        words.pop();
    }
    let mut command_line = command_line();
    if let Some(words) = external::words(&words, &command_line) {
        return Ok(Command::External(words));
    }
    command_line = defaults::apply(command_line, &words)?;
    let mut matches = match command_line.try_get_matches_from_mut(&words) {
        // Only a list of commands shows which external programs are installed.
        Err(error) if matches!(error.kind(), DisplayHelp | Missing) => {
            help::grouped(programs::list(command_line)).try_get_matches_from(words)?
        }
        matches => matches.map_err(|error| usage::with_tip(error, &words, &command_line))?,
    };
    Ok(Cli::from_arg_matches_mut(&mut matches)?.command)
}

fn main() -> ExitCode {
    let is_worker = supervised::enter();
    end_at_once_on_panics();
    signals::survive_file_size_limit();
    for setting in iosonar_pacing::host::isolation::restore_leftovers() {
        status!("note: restored {setting}, which a killed replay with --isolate had left changed");
    }
    let words: Vec<OsString> = env::args_os().collect();
    if let Some(text) = topics::asked(&words) {
        out!("{}", text.trim_end());
        return ExitCode::SUCCESS;
    }
    let command = match parse(words) {
        Ok(command) => command,
        Err(error) => match error.downcast_ref() {
            Some(of_line) => console::refuse(of_line),
            None => return failed(&error),
        },
    };
    // If the supervisor cannot start, run without one.
    if let Some(code) = (!is_worker && command.may_hang()).then(supervised::supervise).and_then(Result::ok) {
        return code;
    }
    match command.run(&PROGRAM) {
        Ok(code) => match console::lost() {
            None => code,
            Some(error) => {
                status!("iosonar: cannot write standard output: {}; the output is incomplete", system_text(&error));
                ExitCode::from(exit::FAILED)
            }
        },
        // A reader like `head` closed the pipe.
        Err(error) if is_broken_pipe(&error) => ExitCode::from(exit::CLOSED_PIPE),
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    console::notes(&format!("iosonar: {}", causes::without_repetition(error)));
    ExitCode::from(if usage::is_usage(error) { exit::USAGE } else { exit::FAILED })
}

/// A panic in any thread ends the process, so that no thread waits for a dead one. Panics of libraries over damaged files are
/// caught, and become errors.
fn end_at_once_on_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |about| {
        if !iosonar_trace::is_guarded() {
            print(about);
            process::abort();
        }
    }));
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// The exit codes, as `iosonar help` and the man page list them.
mod exit {
    /// The command failed.
    pub const FAILED: u8 = 1;
    /// The command line was wrong; clap uses the same code.
    pub const USAGE: u8 = 2;
    /// A comparison found differences.
    pub const DIFFERS: u8 = 3;
    /// A replay, or a pass over a device, is complete, but parts of it failed.
    pub const REQUESTS_FAILED: u8 = 4;
    /// A replay, or a pass over a device, was cut short.
    pub const CUT_SHORT: u8 = 5;
    /// The reader of standard output closed it: as a shell shows a death by SIGPIPE, 128 + 13.
    pub const CLOSED_PIPE: u8 = 141;
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};
    use std::thread;

    use super::*;

    /// In a separate process, because the hook is global.
    #[test]
    fn a_panic_in_any_thread_ends_the_program() {
        const IN_PROCESS: &str = "IOSONAR_TEST_PANICS";
        if std::env::var_os(IN_PROCESS).is_some() {
            end_at_once_on_panics();
            let thread = thread::spawn(|| panic!("in a thread without a join"));
            while !thread.is_finished() {
                thread::yield_now();
            }
            process::exit(0);
        }
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "tests::a_panic_in_any_thread_ends_the_program"]).env(IN_PROCESS, "1");
        let status = test.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.signal(), Some(rustix::process::Signal::ABORT.as_raw()), "{status}");
    }
}
