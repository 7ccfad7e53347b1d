//! The configuration file: defaults of the user, for any command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use iosonar_testing::{Need, left_out};

use crate::files_replaying::{Bench as FilesBench, program};
use crate::replaying::{Bench, MIB, adjacent_requests};

/// A home with this file.
struct Home(tempfile::TempDir);

impl Home {
    fn new(text: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("iosonar")).unwrap();
        fs::write(home.path().join("iosonar/config.toml"), text).unwrap();
        Self(home)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("iosonar/config.toml")
    }

    fn run(&self, words: &[&str]) -> Output {
        self.end(Command::new(env!("CARGO_BIN_EXE_iosonar")).args(words))
    }

    fn end(&self, command: &mut Command) -> Output {
        let command = command.env_remove("IOSONAR_CONFIG").env("XDG_CONFIG_HOME", self.0.path());
        command.output().expect("it runs")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The footer's run of a replay with this home and these options.
fn replayed(home: &Home, options: &[&str]) -> serde_json::Value {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(5, 8));
    let (target, output) = (bench.target(MIB), bench.path("run.replay.parquet"));
    let given = ["replay", load.to_str().unwrap(), "-t", target.to_str().unwrap(), "-o", output.to_str().unwrap()];
    let ran = home.run(&[&given, options].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let info = home.run(&["info", "--json", output.to_str().unwrap()]);
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
    info["run"].clone()
}

#[test]
fn a_default_of_the_user_is_used_and_recorded() {
    let home = Home::new("[replay]\ndepth = 7\nspeedup = 2\nconflicts = \"drop\"\n[workload.run]\ndepth = 9\n");
    let run = replayed(&home, &[]);
    assert_eq!(run["options"]["depth"], 7, "{run:#}");
    assert_eq!(run["typed"]["depth"], "7");
    assert_eq!(run["configured"], serde_json::json!(["speedup", "conflicts", "depth"]), "{run:#}");
    let run = replayed(&home, &["--depth", "3"]);
    assert_eq!((&run["options"]["depth"], &run["typed"]["depth"]), (&3.into(), &"3".into()));
    assert!(!run["configured"].as_array().unwrap().contains(&"depth".into()), "the command line wins: {run:#}");
}

#[test]
fn a_typed_option_suspends_the_defaults_it_excludes() {
    let run = replayed(&Home::new("[replay]\nspeedup = 2\ndepth = 7\n"), &["--asap"]);
    let options = &run["options"];
    assert_eq!((&options["asap"], &options["speedup"], &options["depth"]), (&true.into(), &1.0.into(), &7.into()));
    assert_eq!(run["configured"], serde_json::json!(["depth"]), "{run:#}");
}

#[test]
fn a_replay_of_calls_uses_defaults_and_records_them() {
    let run = |file: &str, options: &[&str]| -> serde_json::Value {
        let home = Home::new(file);
        let bench = FilesBench::new();
        let ran = home.end(&mut bench.command(&program(), options));
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        let info = home.run(&["info", "--json", bench.result().to_str().unwrap()]);
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
        info["run"].clone()
    };
    let from_file = run("[files.replay]\ndepth = 3\nno-cache = true\ndata = 'zero'\n[replay]\ndepth = 9\n", &[]);
    let options = &from_file["options"];
    assert_eq!((&options["depth"], &options["cache"]), (&3.into(), &"none".into()), "{from_file:#}");
    let mut configured: Vec<String> = serde_json::from_value(from_file["configured"].clone()).expect("names");
    configured.sort();
    assert_eq!(configured, ["data", "depth", "no-cache"]);
    // The command line wins, over an option that it excludes, too.
    let file = "[files.replay]\ndepth = 3\ndrop-caches = true\ndata = 'zero'\n";
    let typed = run(file, &["--depth", "2", "--no-cache"]);
    assert_eq!((&typed["options"]["depth"], &typed["options"]["cache"]), (&2.into(), &"none".into()), "{typed:#}");
    assert_eq!(typed["configured"], serde_json::json!(["data"]), "{typed:#}");
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    let home = Home::new("[replay]\n\ndepht = 7\n");
    let refused = home.run(&["info", "x"]);
    assert_eq!(refused.status.code(), Some(2));
    let expected = format!("iosonar: {}:3: replay.depht: no such option; did you mean depth?\n", home.file().display());
    assert_eq!(text(&refused.stderr), expected);
    assert_eq!(home.run(&["config"]).status.code(), Some(2));
    assert_eq!(text(&home.run(&["config", "--path"]).stdout), format!("{}\n", home.file().display()));
}

#[test]
fn help_and_version_do_not_depend_on_the_file() {
    let home = Home::new("[replay]\ndepht = 7\nthis is not TOML");
    let lines: [&[&str]; 7] = [
        &["--version"],
        &["-V"],
        &["-h"],
        &["info", "--help"],
        &["replay", "-h"],
        &["help", "info"],
        &["doctor", "-V"],
    ];
    for words in lines {
        let shown = home.run(words);
        assert_eq!((shown.status.code(), text(&shown.stderr).as_str()), (Some(0), ""), "{words:?}");
        assert!(text(&shown.stdout).starts_with(|c: char| !c.is_whitespace()), "{words:?}");
    }
    assert_eq!(home.run(&["info", "x", "--", "--help"]).status.code(), Some(2), "a file named --help");
}

#[test]
fn config_says_where_each_value_comes_from() {
    let home = Home::new("[replay]\ndepth = 7\n");
    let shown = text(&home.run(&["config"]).stdout);
    let line = |start: &str| shown.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert!(line("depth = 7 ").ends_with(&format!("# {}", home.file().display())), "{shown}");
    assert!(line("speedup = 1 ").ends_with("# built in"), "{shown}");
    assert!(shown.contains("\n[workload.run]\n") && shown.contains("\n[report]\n"), "{shown}");
    // What it prints is a file that it reads.
    let again = Home::new(&shown);
    let read = again.run(&["config"]);
    assert_eq!(read.status.code(), Some(0), "{}", text(&read.stderr));
    assert!(!text(&read.stdout).contains("# built in"));
}

#[test]
fn an_edited_file_is_checked() {
    let home = Home::new("");
    let edit = |line: &str| {
        let script = home.0.path().join("editor");
        fs::write(&script, format!("echo '{line}' > \"$2\"")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        command.args(["config", "--edit"]).env("XDG_CONFIG_HOME", home.0.path()).env_remove("VISUAL");
        command.env_remove("IOSONAR_CONFIG").env("EDITOR", format!("sh '{}' --wait", script.display()));
        command.output().expect("it runs")
    };
    assert_eq!(edit("[replay]").status.code(), Some(0));
    let refused = edit("[repla]");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

#[test]
fn a_file_that_is_named_must_exist() {
    let missing = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
        command.args(words).env("IOSONAR_CONFIG", "/nowhere/config.toml").output().expect("it runs")
    };
    let ran = missing(&["config", "replay"]);
    assert!(!ran.status.success());
    assert!(text(&ran.stderr).contains("/nowhere/config.toml: No such file"), "{}", text(&ran.stderr));
    assert!(missing(&["--help"]).status.success() && missing(&["--version"]).status.success());
}

/// As `sudo -u nobody` may leave HOME=/root.
#[test]
fn a_directory_of_somebody_else_has_no_file() {
    if left_out(Need::Root) {
        return;
    }
    let home = Home::new("[replay]\nnosuch = 1\n");
    let without_permission = |path: PathBuf| {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]);
        home.end(command.args([env!("CARGO_BIN_EXE_iosonar"), "replay"]))
    };
    let refused = text(&without_permission(home.file()).stderr);
    assert!(refused.contains("config.toml: Permission denied"), "{refused}");
    let ran = text(&without_permission(home.0.path().join("iosonar")).stderr);
    assert!(ran.contains("required arguments") && !ran.contains("config.toml"), "{ran}");
}
