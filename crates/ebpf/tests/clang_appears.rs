//! The build script of the recorders, in a package of its own whose `PATH` gets and loses a program called clang.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const BUILD: &str = r#"
mod compile;
fn main() {
    compile::Program { source: "a.bpf.c", headers: &["a.h"], command: "record", processors: &[] }.build();
}
"#;

/// Prints its targets, and makes an empty object.
const CLANG: &str = "#!/bin/sh\nfor word; do [ \"$before\" != -o ] || : >\"$word\"; before=$word; done\necho bpf\n";

const MAIN: &str = "fn main() { println!(\"{}\", cfg!(has_bpf)); }";

/// A program on this process's `PATH`.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Builds the package and returns whether it has the eBPF program.
fn builds_with_bpf(package: &Path, path: &OsString) -> bool {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline"])
        .current_dir(package)
        .env("PATH", path)
        .env_remove("CLANG")
        .env("CARGO_TARGET_DIR", package.join("target"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout == b"true\n"
}

#[test]
fn a_build_sees_that_clang_was_installed_or_removed() {
    let package = tempfile::tempdir().unwrap();
    let at = |name: &str| package.path().join(name);
    fs::create_dir(at("tools")).unwrap();
    fs::create_dir(at("later")).unwrap();
    // The compilers' programs without those beside them, as clang may be installed.
    let cargo = Path::new(env!("CARGO"));
    let found = ["cc", "gcc", "as", "ld", "sh"].iter().filter_map(|name| program(name));
    for tool in found.chain([cargo.to_owned(), cargo.with_file_name("rustc")]) {
        symlink(&tool, at("tools").join(tool.file_name().unwrap())).unwrap();
    }
    fs::write(at("Cargo.toml"), "[package]\nname = \"a\"\nedition = \"2024\"\nbuild = \"build.rs\"\n[workspace]\n")
        .unwrap();
    fs::create_dir(at("src")).unwrap();
    let compile = concat!(env!("CARGO_MANIFEST_DIR"), "/compile.rs");
    fs::copy(compile, at("compile.rs")).unwrap();
    for (name, content) in [("build.rs", BUILD), ("src/main.rs", MAIN), ("a.bpf.c", ""), ("a.h", "")] {
        fs::write(at(name), content).unwrap();
    }
    let path = std::env::join_paths([at("tools"), at("later")]).unwrap();
    assert!(!builds_with_bpf(package.path(), &path));
    let clang = at("later/clang");
    fs::write(&clang, CLANG).unwrap();
    fs::set_permissions(&clang, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(builds_with_bpf(package.path(), &path));
    fs::remove_file(&clang).unwrap();
    assert!(!builds_with_bpf(package.path(), &path));
}
