//! The version that `iosonar --version` names: with the commit, if the sources are a clone of their repository.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of the version of `make`, which has the commit, too.
const VERSION: &str = "IOSONAR_VERSION";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={VERSION}");
    // Builds for tests stay as they are after a commit. Other profiles inherit from `release`.
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if env::var_os(VERSION).is_some() || !is_release {
        return;
    }
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(commit) = commit(&sources) {
        println!("cargo:rustc-env={VERSION}={version} ({commit})");
        watched(&sources).iter().for_each(|file| println!("cargo:rerun-if-changed={}", file.display()));
    }
}

/// The commit by the rule of tools/version.sh; `None` without git, or if another repository has these sources.
pub fn commit(sources: &Path) -> Option<String> {
    let top = PathBuf::from(git(sources, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != sources.canonicalize().ok()? {
        return None;
    }
    git(sources, &["describe", "--always", "--dirty", "--abbrev=12", "--match="])
}

/// Files that change with the commit or with the sources. A commit changes the log of HEAD, also that of a branch.
pub fn watched(sources: &Path) -> Vec<PathBuf> {
    let of_git = ["HEAD", "logs/HEAD"].into_iter().filter_map(|name| git(sources, &["rev-parse", "--git-path", name]));
    let of_sources = ["crates", "Cargo.toml", "Cargo.lock"].map(String::from);
    // A missing file would run this in each build.
    of_git.chain(of_sources).map(|path| sources.join(path)).filter(|path| path.exists()).collect()
}

/// What git prints. It writes nothing, as another git may be at work.
fn git(directory: &Path, words: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // In a hook they name the repository of the hook.
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"].iter().for_each(|name| _ = command.env_remove(name));
    let output = command.arg("--no-optional-locks").args(words).current_dir(directory).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
