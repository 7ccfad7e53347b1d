//! The memory of a million filaments.

use iosonar_trace::{Nanos, Outcome, Sectors};
use iosonar_workload::program::{Layout, Placement, Program, Settings};

const INSTANCES: u64 = 1_000_000;

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("the resident set");
    line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") * 1024
}

/// The resident bytes of each instance, after 10 s in which each has asked for a few requests.
fn bytes_of_an_instance(keys: &str) -> u64 {
    let text = format!(
        "name = \"p\"\nabout = \"A test\"\n[[stream]]\nname = \"s\"\ninstances = {INSTANCES}\nclosed = true\nthink = \"exponential mean=5s\"\nsizes = \"4k:70,64k:30\"\nmix = \"read=70,write=30\"\n{keys}\n"
    );
    let program = Program::parse("p.toml", &text).expect("a program");
    let settings = Settings::new(Layout::Together(Sectors(1 << 34)));
    let before = resident_bytes();
    let mut runtime = program.place(&settings).and_then(Placement::runtime).expect("filaments");
    let mut requests = 0;
    while let Some(now) = runtime.next_at().filter(|at| *at < Nanos::from_secs(10.0)) {
        while let Some(submitted) = runtime.next_due(now) {
            requests += 1;
            runtime.completed(
                submitted.ticket.expect("a closed stream"),
                Outcome::Ok,
                submitted.spec.sectors.bytes(),
                now,
            );
        }
    }
    assert_eq!(runtime.overrun(), None);
    assert!((requests as f64 / (2.0 * INSTANCES as f64) - 1.0).abs() < 0.01, "{requests}");
    (resident_bytes() - before) / INSTANCES
}

/// The environment variable with the keys that a child process measures.
const KEYS: &str = "IOSONAR_TEST_KEYS";

/// Each case has a process of its own: memory that an earlier case freed would hide that of a later one.
#[test]
fn a_million_filaments_need_less_than_500_bytes_each() {
    if let Ok(keys) = std::env::var(KEYS) {
        let bytes = bytes_of_an_instance(&keys);
        println!("{keys}: {bytes} bytes");
        assert!((100..500).contains(&bytes), "{keys}: {bytes} bytes");
        return;
    }
    for keys in ["positions = \"zipf\"", "positions = \"sequential\"\nown_region = true", "positions = \"append\""] {
        let program = std::env::current_exe().expect("this program");
        let status = std::process::Command::new(program).arg("--nocapture").env(KEYS, keys).status().expect("it runs");
        assert!(status.success(), "{keys}");
    }
}
