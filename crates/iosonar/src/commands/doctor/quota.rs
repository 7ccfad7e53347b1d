//! The CPU quota of the control group, as containers have one: when it is used up, all threads stop until the next period.

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;

const TREE: &str = "/sys/fs/cgroup";

pub fn check(host: &Host) -> Found {
    let Some(groups) = host.read("/proc/self/cgroup") else { return Found::unknown("no control groups") };
    let Some(own) = groups.lines().find_map(|line| line.strip_prefix("0::")) else {
        return Found::unknown("control groups of version 1 are not examined");
    };
    // A limit of a group above holds, too.
    let mut group = own.trim_end_matches('/');
    loop {
        let file = format!("{TREE}{group}/cpu.max");
        if let Some((quota, period)) = host.read(&file).and_then(|text| limit(&text)) {
            let command = format!("echo max | sudo tee {file}");
            let trial = Trial::Settings(vec![(host.path(&file), "max".into())]);
            return Found::improvable(
                format!("{} ms of processor time in each {} ms", quota / 1000, period / 1000),
                Change::new(Effect::Milliseconds, "remove the quota, which throttles the issuing loop", command, trial),
            );
        }
        match group.rsplit_once('/') {
            Some((above, _)) => group = above,
            None => return Found::good("none"),
        }
    }
}

/// The quota and the period in µs; `None` without a limit.
fn limit(text: &str) -> Option<(u64, u64)> {
    let (quota, period) = text.split_once(' ')?;
    Some((quota.parse().ok()?, period.parse().ok()?))
}
