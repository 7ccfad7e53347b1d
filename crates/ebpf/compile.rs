//! Compiles an eBPF program with clang; a part of the build scripts of the recorders. Without clang the crates still build,
//! and their recorders return `Error::NotBuilt`; `cfg(has_bpf)` distinguishes the two builds.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, and the command that needs it.
pub struct Program {
    /// Its source, `DIRECTORY/NAME.bpf.c`. The object is `NAME.bpf.o`.
    pub source: &'static str,
    /// The files that the source includes.
    pub headers: &'static [&'static str],
    /// The command that needs it.
    pub command: &'static str,
    /// The processors whose registers it knows; empty if it reads none.
    pub processors: &'static [&'static str],
}

impl Program {
    /// Compiles the program, if clang is installed.
    pub fn build(&self) {
        println!("cargo::rustc-check-cfg=cfg(has_bpf)");
        println!("cargo::rerun-if-changed={}", self.source);
        for header in self.headers {
            println!("cargo::rerun-if-changed={header}");
        }
        println!("cargo::rerun-if-env-changed=CLANG");
        let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
        let processor = env::var("CARGO_CFG_TARGET_ARCH").expect("set by cargo");
        watch(&clang);
        match targets(&clang) {
            Ok(targets) if !targets.contains("bpf") => self.warn(&format!("`{clang}` has no target bpf")),
            Ok(_) if !self.processors.is_empty() && !self.processors.contains(&processor.as_str()) => {
                self.warn(&format!("the registers of {processor} are unknown"));
            }
            Ok(_) => {
                self.compile(&clang, &processor);
                println!("cargo::rustc-cfg=has_bpf");
            }
            Err(problem) => self.warn(&format!("`{clang}` does not run ({problem})")),
        }
    }

    /// If clang is installed, a compile error fails the build; leaving the recorder out would hide the error.
    fn compile(&self, clang: &str, processor: &str) {
        let name = Path::new(self.source).with_extension("o");
        let directory = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
        let status = Command::new(clang)
            // v2 is the oldest instruction set that the programs need; -g emits the type information (BTF).
            .args(["-O2", "-g", "-target", "bpf", "-mcpu=v2", "-Wall", "-Wextra", "-Werror"])
            // The same bytes in any directory.
            .arg("-fdebug-compilation-dir=.")
            .arg(format!("-D__TARGET_ARCH_{processor}"))
            .args(["-c", self.source, "-o"])
            .arg(directory.join(name.file_name().expect("a file")))
            .status()
            .expect("clang printed its targets before");
        assert!(status.success(), "{clang} cannot compile {}", self.source);
    }

    fn warn(&self, reason: &str) {
        println!(
            "cargo::warning=`{}` is left out of this build: {reason}. Install clang, or name one in CLANG, and build again.",
            self.command
        );
    }
}

/// Lets cargo run the build script again when clang is installed, replaced or removed: a build without it would else remain
/// one. Until it is installed, the directories of `PATH` are watched.
fn watch(clang: &str) {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).filter(|directory| directory.is_dir()).collect();
    let is_path = clang.contains('/');
    let found = directories.iter().map(|directory| directory.join(clang)).find(|file| file.is_file());
    match found {
        // A file that does not exist makes cargo run the script each time.
        _ if is_path => println!("cargo::rerun-if-changed={clang}"),
        Some(file) => println!("cargo::rerun-if-changed={}", file.display()),
        None => {
            println!("cargo::rerun-if-env-changed=PATH");
            let mut watched = BTreeSet::new();
            for directory in directories {
                let directory = directory.canonicalize().unwrap_or(directory);
                if watched.insert(directory.clone()) {
                    println!("cargo::rerun-if-changed={}", directory.display());
                }
            }
        }
    }
}

fn targets(clang: &str) -> Result<String, String> {
    let output = Command::new(clang).arg("--print-targets").output().map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
