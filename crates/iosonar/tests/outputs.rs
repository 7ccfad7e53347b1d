//! Outputs that commands must refuse: block devices, and their own inputs.

use crate::replaying;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use iosonar_testing::{LoopDevice, Need, left_out};

use crate::replaying::{Bench, MIB, adjacent_requests};

fn iosonar(bench: &Bench, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosonar"));
    command.current_dir(bench.path("")).args(arguments).stdin(Stdio::null()).output().expect("it runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn no_command_writes_its_output_to_a_block_device() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(4 * MIB));
    let load = bench.load(&adjacent_requests(100, 8));
    let link = bench.path("link.load");
    std::os::unix::fs::symlink(device.path(), &link).unwrap();
    let before = fs::read(device.path()).unwrap();
    for output in [device.path(), &link] {
        for more in [&[][..], &["--overwrite"]] {
            for command in [
                &["convert", text(&load), text(output), "--to", "classic"][..],
                &["edit", text(&load), text(output), "slip", "--to", "classic"],
                &["generate", "poisson", text(output), "--to", "classic", "--duration", "1s"],
            ] {
                let ran = iosonar(&bench, &[command, more].concat());
                assert_eq!(ran.status.code(), Some(1), "{command:?}: {}", stderr(&ran));
                assert!(stderr(&ran).contains("block device"), "{command:?}: {}", stderr(&ran));
            }
        }
        let ran =
            iosonar(&bench, &["record", "--device", text(device.path()), "--output", text(output), "--duration", "1"]);
        assert!(!ran.status.success() && stderr(&ran).contains("block device"), "{}", stderr(&ran));
        bench.replay(&load, &bench.target(MIB), &["--output", text(output), "--overwrite"]).refused(&[]);
        let journal = bench.text("x.replay.parquet.journal", "whatever");
        let ran = iosonar(&bench, &["recover", text(&journal), "--output", text(output)]);
        assert!(!ran.status.success(), "{}", stderr(&ran));
    }
    assert!(fs::read(device.path()).unwrap() == before, "nothing was written");
}

#[test]
fn outputs_may_be_pipes_and_character_devices() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(100, 8));
    for output in ["/dev/null", "/dev/stdout", "-"] {
        let ran = iosonar(&bench, &["convert", text(&load), output, "--to", "classic"]);
        assert!(ran.status.success(), "{output}: {}", stderr(&ran));
        assert_eq!(ran.stdout.is_empty(), output == "/dev/null", "{output}");
    }
    let fifo = bench.path("fifo");
    replaying::run("mkfifo", &[fifo.as_os_str()]);
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || fs::read_to_string(fifo).unwrap())
    };
    let ran = iosonar(&bench, &["convert", text(&load), text(&fifo), "--to", "classic"]);
    assert!(ran.status.success(), "{}", stderr(&ran));
    assert_eq!(reader.join().unwrap().lines().filter(|line| line.contains(" W ")).count(), 66);
}

#[test]
fn the_output_must_not_be_a_load_that_is_merged() {
    let bench = Bench::new();
    let load = bench.load(&adjacent_requests(10, 8));
    let other = bench.text("m.load", &replaying::text(&adjacent_requests(1000, 8)));
    let hard = bench.path("hard.load");
    fs::hard_link(&other, &hard).unwrap();
    let before = fs::read(&other).unwrap();
    for (pipeline, output) in [
        ("merge with=m.load", "m.load"),
        ("append with=m.load", "hard.load"),
        ("slip | adjacent with=a.load,hard.load", "m.load"),
    ] {
        let ran = iosonar(&bench, &["edit", text(&load), output, pipeline, "--overwrite"]);
        assert!(stderr(&ran).contains("name another output"), "{pipeline}: {}", stderr(&ran));
        assert!(fs::read(&other).unwrap() == before, "{pipeline}");
    }
}

#[test]
fn man_replaces_only_man_pages_of_iosonar() {
    let bench = Bench::new();
    let pages = bench.path("man1");
    let install = |more: &[&str]| iosonar(&bench, &[&["man", "--out", "man1"], more].concat());
    // Installed twice, the second time over an earlier version.
    assert!(install(&[]).status.success());
    let names: Vec<_> = fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(names.len() > 10, "{names:?}");
    let page = pages.join("iosonar-replay.1");
    let now = fs::read_to_string(&page).unwrap();
    fs::write(&page, now.replace(".SH OPTIONS", ".SH CHOICES").replace(env!("CARGO_PKG_VERSION"), "0.0.1")).unwrap();
    assert!(install(&[]).status.success());
    assert!(fs::read_to_string(&page).unwrap() == now);

    fs::remove_dir_all(&pages).unwrap();
    fs::create_dir(&pages).unwrap();
    for others in ["my notes about iosonar\n", "", ".TH fio 1\n.SH NAME\nfio\n", "\0\u{1}.TH iosonar\n"] {
        fs::write(&page, others).unwrap();
        let ran = install(&[]);
        assert!(!ran.status.success(), "{others:?}");
        for word in ["iosonar-replay.1", "not a man page of iosonar", "--overwrite"] {
            assert!(stderr(&ran).contains(word), "{}", stderr(&ran));
        }
        assert_eq!(fs::read_to_string(&page).unwrap(), others);
        assert_eq!(fs::read_dir(&pages).unwrap().count(), 1, "none of the others was written either");
    }
    assert!(install(&["--overwrite"]).status.success());
    assert!(fs::read_to_string(&page).unwrap() == now);
}
