//! A target that hangs: a replay waits for it, or says which requests are unfinished.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use iosonar_testing::{LoopDevice, Mount, Need, left_out, output_of};
use iosonar_trace::Outcome;

use crate::faults::long;
use crate::replaying::{Bench, Finished, MIB, Row, marked_target, run, signal_tree, wait_until};

/// A file system that can be frozen: writes then hang until it is thawed.
struct Frozen(Mount);

impl Frozen {
    fn mounted(bench: &Bench, device: &LoopDevice) -> Self {
        run("mkfs.ext4", &["-q".as_ref(), device.path().as_os_str()]);
        Self(Mount::new(bench.path("frozen"), [device.path()]))
    }

    fn freeze(&self) {
        run("fsfreeze", &["--freeze".as_ref(), self.0.path().as_os_str()]);
    }

    fn thaw(&self) {
        run("fsfreeze", &["--unfreeze".as_ref(), self.0.path().as_os_str()]);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        Command::new("fsfreeze").arg("--unfreeze").arg(self.0.path()).output().ok();
    }
}

fn target_on(frozen: &Frozen) -> PathBuf {
    let target = frozen.0.path().join("target");
    marked_target(&target, MIB);
    target
}

#[test]
fn a_target_that_hangs_and_recovers_loses_nothing() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(32 * MIB));
    let frozen = Frozen::mounted(&bench, &device);
    let target = target_on(&frozen);
    let rows: Vec<Row> = (0..2000).map(|i| (i as f64 / 1e3, i % 100 * 8, 8, 'W')).collect();
    let running = bench.start(&bench.load(&rows), &target, &[]);
    frozen.freeze();
    std::thread::sleep(std::time::Duration::from_millis(700));
    frozen.thaw();
    let ran = running.end().with_code(0);
    assert!(ran.by_request().iter().map(|row| row.request).eq(0..2000), "each once");
    assert_eq!(ran.statistics()["completed"], 2000);
}

#[test]
fn a_stopped_run_on_a_hanging_target_lists_what_is_unfinished() {
    if left_out(Need::Loop) {
        return;
    }
    let (bench, device) = (Bench::new(), LoopDevice::new(32 * MIB));
    let frozen = Frozen::mounted(&bench, &device);
    // A file can be read while the replay hangs.
    let messages = bench.path("messages");
    let mut command = bench.command(&long(&bench), &target_on(&frozen), &[]);
    let child = command.stderr(File::create(&messages).unwrap()).spawn().unwrap();
    wait_until("the journal has entries", || bench.journaled("r.replay.parquet") >= 80);
    frozen.freeze();
    let says = |words: &str| fs::read_to_string(&messages).unwrap().contains(words);
    wait_until("it reports the hang", || says("no completion for ") && says(" in flight"));
    signal_tree("INT", child.id());
    // Two pending signals count as one.
    wait_until("the first signal arrived", || says("Ctrl-C again to stop at once"));
    signal_tree("INT", child.id());
    // The result exists before the kernel lets the process end.
    wait_until("the result is there", || bench.path("r.replay.parquet").exists());
    frozen.thaw();
    let ran = Finished::of(output_of(child), bench.path("r.replay.parquet")).with_code(5);
    let rows = ran.rows();
    let unfinished = rows.iter().filter(|row| row.outcome == Outcome::Unfinished).count();
    assert!(unfinished > 0);
    assert_eq!(ran.statistics()["unfinished"], unfinished);
    assert!(rows.iter().any(|row| row.outcome == Outcome::Unfinished && row.issued.is_some()));
    assert!(ran.stdout.contains("unfinished"), "{}", ran.stdout);
}
