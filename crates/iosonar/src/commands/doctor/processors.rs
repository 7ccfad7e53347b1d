//! How many processors this process may use: the loop needs one, the kernel and the device another.

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;

pub fn check(host: &Host) -> Found {
    let Some(online) = host.read("/sys/devices/system/cpu/online").map(|list| count(&list)) else {
        return Found::unknown("/sys/devices/system/cpu/online cannot be read");
    };
    let allowed = host.status("Cpus_allowed_list").map_or(online, |list| count(&list)).min(online);
    let isolated = host.read("/sys/devices/system/cpu/isolated").filter(|list| !list.is_empty());
    let isolated = isolated.map(|list| format!("; isolated at boot: {list}")).unwrap_or_default();
    match (allowed, online) {
        (1, 1) => Found::improvable(
            "one: the issuing loop shares it with the kernel's work for the device",
            Change::without_command(Effect::Milliseconds, "use a machine with two processors or more"),
        ),
        (1, _) => Found::improvable(
            format!("this process may use 1 of {online}"),
            Change::new(
                Effect::Milliseconds,
                "let the replay use all processors",
                format!("taskset --cpu-list 0-{} iosonar replay …", online - 1),
                Trial::Not("a floor on one processor would not be comparable"),
            ),
        ),
        (allowed, online) if allowed == online => Found::good(format!("{online} online{isolated}")),
        (allowed, online) => Found::good(format!("{allowed} of {online} allowed{isolated}")),
    }
}

/// The number of processors in a list such as `0,2-3`.
fn count(list: &str) -> usize {
    let of_range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.trim().parse::<usize>().ok()?, last.trim().parse::<usize>().ok()?);
        Some((last + 1).saturating_sub(first))
    };
    list.split(',').filter_map(of_range).sum()
}
