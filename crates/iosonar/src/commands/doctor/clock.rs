//! The clock source: the loop reads the clock in each turn, and some sources need a call of the kernel or the hypervisor.

use std::hint::black_box;
use std::time::Instant;

use iosonar_pacing::clock::monotonic;

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;

const DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";
/// Read by a slow access to a device, or in a call of the kernel.
const SLOW: [&str; 5] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "xen"];
const FAST: &str = "tsc";
const READINGS: u32 = 10_000;

pub fn check(host: &Host) -> Found {
    let Some(source) = host.read(&format!("{DIRECTORY}/current_clocksource")) else {
        return Found::unknown("the kernel does not name its clock source");
    };
    let what = if host.is_own() { format!("{source}, {} ns a reading", reading_ns()) } else { source.clone() };
    if !SLOW.contains(&source.as_str()) {
        return Found::good(what);
    }
    let available = host.read(&format!("{DIRECTORY}/available_clocksource")).unwrap_or_default();
    if !available.split_whitespace().any(|name| name == FAST) {
        let change = "use a machine with a constant time-stamp counter (tsc)";
        return Found::improvable(what, Change::without_command(Effect::FewMicroseconds, change));
    }
    let file = format!("{DIRECTORY}/current_clocksource");
    let command = format!("echo {FAST} | sudo tee {file}");
    let trial = Trial::Settings(vec![(host.path(&file), FAST.into())]);
    Found::improvable(what, Change::new(Effect::FewMicroseconds, "read the time-stamp counter instead", command, trial))
}

fn reading_ns() -> u128 {
    let start = Instant::now();
    (0..READINGS).for_each(|_| _ = black_box(monotonic()));
    start.elapsed().as_nanos() / u128::from(READINGS)
}
