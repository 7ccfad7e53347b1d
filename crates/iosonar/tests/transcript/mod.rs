//! What commands say, as snapshots: a file for each subject lists commands with all that they print.
//!
//! After a change of a message, update the snapshots and review the change:
//! `INSTA_UPDATE=always cargo test --package iosonar --test commands messages_of`, then `git diff`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::replaying::directory_with;

/// A directory with files, and what was said in it.
pub struct Transcript {
    directory: TempDir,
    text: String,
}

impl Transcript {
    pub fn new(files: &[(&str, &str)]) -> Self {
        iosonar_testing::default_signals();
        Self { directory: directory_with(files), text: String::new() }
    }

    fn shell(&self, line: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_iosonar")).parent().expect("the directory of programs");
        // Without programs `iosonar-NAME` of this machine.
        let path = format!("{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", program.display());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1\n{line}")]).stdin(Stdio::null());
        shell.current_dir(&self.directory).env("PATH", path).output().expect("a shell")
    }

    /// Runs lines of a shell that must succeed.
    pub fn prepare(self, lines: &str) -> Self {
        let output = self.shell(&format!("set -e\n{lines}"));
        assert!(output.status.success(), "{lines}: {}", String::from_utf8_lossy(&output.stdout));
        self
    }

    /// Runs each line in a shell, and adds it with its output, and with its exit code if that is not 0.
    pub fn run(mut self, lines: &str) -> Self {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let output = self.shell(line);
            _ = writeln!(self.text, "$ {line}");
            for said in String::from_utf8(output.stdout).expect("UTF-8").lines() {
                // The size of a table depends on the version of the library that compresses it.
                let size = said.rfind(", ").filter(|_| said.contains(" others) over "));
                _ = writeln!(self.text, "{}", &said[..size.unwrap_or(said.len())]);
            }
            if !output.status.success() {
                _ = writeln!(self.text, "[{}]", output.status.code().map_or("killed".into(), |code| code.to_string()));
            }
            self.text.push('\n');
        }
        self
    }

    /// Compares all of it with the snapshot of that name.
    pub fn check(self, name: &str) {
        let directory = self.directory.path().display().to_string();
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_snapshot_path("../snapshots/messages");
        settings.bind(|| insta::assert_snapshot!(name, self.text.replace(&directory, "DIR")));
    }
}

/// The command with each of the options: a line for each.
pub fn each(command: &str, options: &str) -> String {
    options.trim().lines().map(|option| format!("{command} {}\n", option.trim())).collect()
}
