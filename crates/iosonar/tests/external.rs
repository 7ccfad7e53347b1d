//! `iosonar NAME` runs `iosonar-NAME`: where it is searched, its arguments and environment, the error if there is none.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use assert_cmd::Command;
use tempfile::TempDir;

/// The binary in its own directory, and a second directory that is the whole `PATH`.
struct Installation {
    directories: TempDir,
    /// Serialises the tests: a process started by another test would inherit a script that is being written, and the
    /// kernel does not run a file that is open for writing ("text file busy").
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Installation {
    fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // On the file system of the binary, for the hard link.
        let directories = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        for name in ["own", "path"] {
            fs::create_dir(directories.path().join(name)).expect("a directory within");
        }
        fs::hard_link(env!("CARGO_BIN_EXE_iosonar"), directories.path().join("own/iosonar"))
            .expect("a link to the binary");
        Self { directories, _turn: turn }
    }

    fn program(&self, directory: &str, name: &str, script: &str) -> PathBuf {
        let file = self.directories.path().join(directory).join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it may be run");
        file
    }

    fn iosonar(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.directories.path().join("own/iosonar"));
        command.args(arguments).env("PATH", self.directories.path().join("path"));
        command
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard error of a command that must fail with this code.
fn error_of(command: &mut Command, code: i32) -> String {
    text(&command.assert().code(code).get_output().stderr)
}

#[test]
fn the_directory_of_the_binary_comes_before_the_path() {
    let installation = Installation::new();
    installation.program("path", "iosonar-hello", "echo from the path");
    installation.iosonar(&["hello"]).assert().success().stdout("from the path\n");
    installation.program("own", "iosonar-hello", "echo from beside the binary");
    installation.iosonar(&["hello"]).assert().success().stdout("from beside the binary\n");
}

#[test]
fn a_program_gets_its_arguments_and_returns_its_exit_code() {
    let installation = Installation::new();
    installation.program("path", "iosonar-hello", "printf '%s|' \"$@\"; exit 7");
    installation.iosonar(&["hello", "--help", "two words", "-x"]).assert().code(7).stdout("--help|two words|-x|");
}

#[test]
fn a_program_gets_the_schema_version() {
    let installation = Installation::new();
    installation.program("path", "iosonar-hello", "echo $IOSONAR_SCHEMA_VERSION");
    let version = format!("{}\n", iosonar_trace::SCHEMA_VERSION);
    installation.iosonar(&["hello"]).assert().success().stdout(version);
}

/// The entry of a command in the list of commands, with its continuation lines.
fn listed(help: &str, name: &str) -> String {
    let begins = format!("  {name} ");
    let lines = help.lines().skip_while(|line| !line.starts_with(&begins));
    let rest = lines.clone().skip(1).take_while(|line| line.starts_with("   "));
    lines.take(1).chain(rest).flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_help_lists_the_python_half_and_every_other_program() {
    let installation = Installation::new();
    installation.program("own", "iosonar-report", "");
    for internal in ["iosonar-cache-picture", "iosonar-scale-hosts"] {
        installation.program("own", internal, "");
    }
    let hello = installation.program("own", "iosonar-hello", "");
    installation.program("path", "iosonar-hello", "");
    installation.program("path", "iosonar-replay", "");
    let file = installation.program("path", "iosonar-data", "");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it may not be run");
    let message = installation.iosonar(&["--help"]).assert().success();
    let help = text(&message.get_output().stdout);
    assert!(listed(&help, "report").starts_with("report Show runs or loads as diagrams"), "{help}");
    assert!(!listed(&help, "report").contains("not installed"), "{help}");
    assert!(listed(&help, "sql").ends_with("(not installed)"), "{help}");
    // Lists the program that would run; not one with the name of a subcommand, and not a file that cannot be executed.
    assert_eq!(listed(&help, "hello"), format!("hello {}", hello.display()), "{help}");
    assert!(!help.contains("cache-picture") && !help.contains("scale-hosts"), "{help}");
    assert!(!help.contains("iosonar-replay") && !help.contains("iosonar-data"), "{help}");
    let short = installation.iosonar(&["help"]).assert().success();
    assert_eq!(text(&short.get_output().stdout), help);
}

#[test]
fn help_for_a_program_is_that_of_the_program() {
    let installation = Installation::new();
    installation.program("path", "iosonar-report", "echo report \"$@\"");
    installation.program("path", "iosonar-hello", "echo hello \"$@\"");
    for name in ["report", "hello"] {
        installation.iosonar(&["help", name]).assert().success().stdout(format!("{name} --help\n"));
    }
    installation.iosonar(&["help", "xyzzy"]).assert().code(2);
}

#[test]
fn a_programs_name_cannot_change_the_terminal() {
    let installation = Installation::new();
    installation.program("path", "iosonar-a\u{1b}[31mb", "");
    let help = text(&installation.iosonar(&["--help"]).assert().success().get_output().stdout);
    assert!(help.contains(r"a\x1b[31mb") && !help.contains('\u{1b}'), "{help}");
}

#[test]
fn completions_and_the_man_page_include_the_python_half() {
    let installation = Installation::new();
    for (arguments, report) in [
        (
            &["completions", "bash"][..],
            "generate workload cache record device replay report view diagnose compare ab sql",
        ),
        (&["completions", "zsh"], "'report:Show runs or loads as diagrams"),
        (&["completions", "fish"], "-a \"report\" -d 'Show runs or loads as diagrams"),
        (&["man"], "iosonar\\-report(1)\nShow runs or loads as diagrams"),
    ] {
        let made = text(&installation.iosonar(arguments).assert().success().get_output().stdout);
        assert!(made.contains(report), "{arguments:?}: {made}");
        assert!(!made.contains("not installed"), "they must suit any installation: {made}");
    }
}

#[test]
fn a_file_without_execute_permission_is_not_a_program() {
    let installation = Installation::new();
    let file = installation.program("own", "iosonar-hello", "echo never");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it may not be run");
    installation.program("path", "iosonar-hello", "echo from the path");
    installation.iosonar(&["hello"]).assert().success().stdout("from the path\n");
}

#[test]
fn a_program_that_cannot_start_is_named() {
    let installation = Installation::new();
    let file = installation.program("own", "iosonar-hello", "");
    fs::write(&file, "#!/no/such/interpreter\n").expect("a script without its interpreter");
    let message = error_of(&mut installation.iosonar(&["hello"]), 1);
    assert!(message.contains("cannot run") && message.contains("own/iosonar-hello"), "{message}");
}

#[test]
fn a_missing_python_half_is_reported_with_how_to_install_it() {
    let installation = Installation::new();
    let message = error_of(&mut installation.iosonar(&["report"]), 1);
    assert!(message.contains("pip install") && message.contains("iosonar-report"), "{message}");
}

#[test]
fn the_binary_knows_every_program_of_the_python_half() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/scripts");
    let installation = Installation::new();
    for script in fs::read_dir(scripts).expect("the Python half's programs") {
        let file = script.expect("a program").file_name();
        let Some(name) = file.to_string_lossy().strip_prefix("iosonar-").map(str::to_owned) else {
            // Another name of `iosonar campaign`.
            assert_eq!(file, "tree-replay");
            continue;
        };
        // `cache fill --picture` and `files scale --hosts` run them.
        if ["cache-picture", "scale-hosts"].contains(&name.as_str()) {
            continue;
        }
        let message = error_of(&mut installation.iosonar(&[&name]), 1);
        assert!(message.contains("is part of iosonar's Python half"), "add {name} to PYTHON_HALF: {message}");
    }
}
