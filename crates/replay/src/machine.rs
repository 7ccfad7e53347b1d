//! The machine that a run was made on, as its footer keeps it.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

/// A snapshot of what can change a measurement.
pub fn snapshot() -> Value {
    json!({
        "kernel": read("/proc/sys/kernel/osrelease"),
        "hostname": read("/proc/sys/kernel/hostname"),
        "processor": processor(),
        "cpus": std::thread::available_parallelism().map(usize::from).ok(),
        "memory_kib": memory_kib(),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "idle_driver": read("/sys/devices/system/cpu/cpuidle/current_driver"),
        "clock_source": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "virtualisation": virtualisation(),
    })
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|s| s.trim().to_owned())
}

fn processor() -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split(':').nth(1)?.trim().to_owned())
}

fn memory_kib() -> Option<u64> {
    let text = read("/proc/meminfo")?;
    text.lines().find(|l| l.starts_with("MemTotal"))?.split_whitespace().nth(1)?.parse().ok()
}

/// By systemd's own tool where there is one.
fn virtualisation() -> Option<String> {
    let output = Command::new("systemd-detect-virt").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
