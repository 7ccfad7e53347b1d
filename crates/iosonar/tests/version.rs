//! The commit that the build script names, in clones, worktrees and copies of the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../build.rs"]
#[expect(dead_code, reason = "its `main` is for cargo")]
mod build;

/// A repository with this program's rule of the version, and a commit.
struct Repository(tempfile::TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        let top = repository.sources();
        fs::create_dir_all(top.join("tools")).unwrap();
        fs::create_dir_all(top.join("crates")).unwrap();
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/version.sh"), top.join("tools/version.sh"))
            .unwrap();
        fs::write(top.join("Cargo.toml"), "version = \"1.2.3\"\n").unwrap();
        git(&top, &["init", "--quiet", "--initial-branch", "main"]);
        git(&top, &["add", "--all"]);
        git(&top, &["commit", "--quiet", "--message", "First"]);
        repository
    }

    fn sources(&self) -> PathBuf {
        self.0.path().join("sources")
    }
}

fn git(directory: &Path, words: &[&str]) {
    let author = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
    let mut command = Command::new("git");
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"].iter().for_each(|name| _ = command.env_remove(name));
    let output = command.args(author).args(words).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What `make` calls this version.
fn of_make(sources: &Path) -> String {
    let output = Command::new("bash").arg(sources.join("tools/version.sh")).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_clone_and_a_worktree_name_the_commit_as_make_does() {
    let repository = Repository::new();
    let worktree = repository.0.path().join("worktree");
    git(&repository.sources(), &["worktree", "add", "--quiet", "-b", "other", worktree.to_str().unwrap()]);
    assert!(worktree.join(".git").is_file());
    for sources in [repository.sources(), worktree] {
        let commit = build::commit(&sources).unwrap();
        assert_eq!(commit.len(), 12, "{commit}");
        assert_eq!(format!("1.2.3 ({commit})"), of_make(&sources));
        fs::write(sources.join("Cargo.toml"), "version = \"1.2.4\"\n").unwrap();
        assert_eq!(build::commit(&sources), Some(format!("{commit}-dirty")));
        assert_eq!(format!("1.2.4 ({commit}-dirty)"), of_make(&sources));
        let before = contents(&sources);
        git(&sources, &["commit", "--quiet", "--all", "--message", "Second"]);
        assert_ne!(contents(&sources), before, "cargo sees the commit");
        assert_ne!(build::commit(&sources), Some(commit));
    }
}

/// Of the files that cargo watches.
fn contents(sources: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let watched = build::watched(sources);
    assert!(watched.iter().all(|file| file.exists()), "a missing file builds again each time: {watched:?}");
    watched.into_iter().map(|file| (file.clone(), fs::read(file).unwrap_or_default())).collect()
}

#[test]
fn copies_of_the_sources_name_no_commit() {
    let repository = Repository::new();
    let copy = repository.sources().join("vendor/iosonar");
    fs::create_dir_all(&copy).unwrap();
    assert_eq!(build::commit(&copy), None, "the commit of another repository");
    fs::remove_dir_all(repository.sources().join(".git")).unwrap();
    assert_eq!(build::commit(&repository.sources()), None);
    assert!(build::watched(&repository.sources()).iter().all(|file| file.starts_with(repository.sources())));
}
