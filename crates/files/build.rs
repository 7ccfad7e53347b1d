//! Compiles the eBPF program with clang. Without clang the crate still builds, and recording by eBPF returns
//! `Error::NotBuilt`; `cfg(has_bpf)` distinguishes the two builds.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "src/record/bpf/calls.bpf.c";
const HEADER: &str = "src/record/bpf/kernel.h";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_bpf)");
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed={HEADER}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let processor = env::var("CARGO_CFG_TARGET_ARCH").expect("set by cargo");
    match targets(&clang) {
        Ok(targets) if !targets.contains("bpf") => warn(&format!("`{clang}` has no target bpf")),
        Ok(_) if !["x86_64", "aarch64"].contains(&processor.as_str()) => {
            warn(&format!("the registers of {processor} are unknown"));
        }
        Ok(_) => {
            let object = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("calls.bpf.o");
            compile(&clang, &processor, &object);
            println!("cargo::rustc-cfg=has_bpf");
        }
        Err(problem) => warn(&format!("`{clang}` does not run ({problem})")),
    }
}

fn targets(clang: &str) -> Result<String, String> {
    let output = Command::new(clang).arg("--print-targets").output().map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// If clang is installed, a compile error fails the build; leaving the recorder out would hide the error.
fn compile(clang: &str, processor: &str, object: &Path) {
    let status = Command::new(clang)
        // v2 is the oldest instruction set that the program needs; -g emits the type information (BTF).
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v2", "-Wall", "-Wextra", "-Werror"])
        .arg(format!("-D__TARGET_ARCH_{processor}"))
        .args(["-c", SOURCE, "-o"])
        .arg(object)
        .status()
        .expect("clang printed its targets before");
    assert!(status.success(), "{clang} cannot compile {SOURCE}");
}

fn warn(reason: &str) {
    println!(
        "cargo::warning=`iosonar files record --with ebpf` is left out of this build: {reason}. Install clang, or name one \
         in CLANG."
    );
}
