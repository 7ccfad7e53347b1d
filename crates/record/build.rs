//! Compiles the eBPF program with clang. Without clang the crate still builds, and `Recorder::start` returns
//! [`Error::NotBuilt`]; `cfg(has_bpf)` distinguishes the two builds.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "src/bpf/record.bpf.c";
const HEADER: &str = "src/bpf/kernel.h";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_bpf)");
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed={HEADER}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    match targets(&clang) {
        Ok(targets) if targets.contains("bpf") => {
            compile(&clang, &PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("record.bpf.o"));
            println!("cargo::rustc-cfg=has_bpf");
        }
        Ok(_) => warn(&format!("`{clang}` has no target bpf")),
        Err(problem) => warn(&format!("`{clang}` does not run ({problem})")),
    }
}

fn targets(clang: &str) -> Result<String, String> {
    let output = Command::new(clang).arg("--print-targets").output().map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// If clang is installed, a compile error fails the build; leaving `record` out would hide the error.
fn compile(clang: &str, object: &Path) {
    let status = Command::new(clang)
        // v2 is the oldest instruction set that the program needs; -g emits the type information (BTF).
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v2", "-Wall", "-Wextra", "-Werror", "-c", SOURCE, "-o"])
        .arg(object)
        .status()
        .expect("clang printed its targets before");
    assert!(status.success(), "{clang} cannot compile {SOURCE}");
}

fn warn(reason: &str) {
    println!(
        "cargo::warning=`iosonar record` is left out of this build: {reason}. Install clang, or name one in CLANG."
    );
}
