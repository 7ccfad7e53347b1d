//! The I/O schedulers of the disks, which can reorder and delay requests.

use super::found::{Change, Effect, Found, State, Trial};
use super::host::Host;

const BLOCK: &str = "/sys/block";
/// Devices in memory and removable ones are no storage to measure.
const OTHERS: [&str; 5] = ["loop", "ram", "zram", "sr", "fd"];

pub fn check(host: &Host) -> Found {
    let disks: Vec<(String, String)> = host
        .names(BLOCK)
        .into_iter()
        .filter(|disk| !OTHERS.iter().any(|other| disk.starts_with(other)))
        .filter_map(|disk| {
            let line = host.read(&format!("{BLOCK}/{disk}/queue/scheduler"))?;
            let active = line.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or("none").to_owned();
            Some((disk, active))
        })
        .collect();
    if disks.is_empty() {
        return Found::unknown("no disks");
    }
    let what: Vec<String> = disks.iter().map(|(disk, active)| format!("{disk} {active}")).collect();
    let changes: Vec<Change> = disks
        .iter()
        .filter(|(_, active)| active != "none")
        .map(|(disk, active)| {
            Change::new(
                Effect::Latencies,
                format!("if {disk} is the target: measure it without {active}"),
                format!("sudo \"$(command -v iosonar)\" device scheduler /dev/{disk} none"),
                Trial::Not("the floor has no I/O"),
            )
        })
        .collect();
    let state = if changes.is_empty() { State::Good } else { State::Improvable };
    Found { state, what: what.join(", "), changes }
}
