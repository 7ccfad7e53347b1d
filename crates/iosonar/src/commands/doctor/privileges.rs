//! Whether this process may do what recording and isolation need.

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;

/// Those that iosonar uses, by their number in `linux/capability.h`.
#[derive(Clone, Copy, Debug)]
pub enum Capability {
    IpcLock = 14,
    SysAdmin = 21,
    SysNice = 23,
    Perfmon = 38,
    Bpf = 39,
}

impl Capability {
    const ALL: [Self; 5] = [Self::SysAdmin, Self::SysNice, Self::IpcLock, Self::Bpf, Self::Perfmon];

    fn name(self) -> &'static str {
        match self {
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::SysNice => "CAP_SYS_NICE",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        }
    }
}

pub fn check(host: &Host) -> Found {
    let lacking = lacking(host, &Capability::ALL);
    let user = host.status("Uid").and_then(|ids| ids.split_whitespace().nth(1).map(str::to_owned));
    let user = match user.as_deref() {
        Some("0") => "root".to_owned(),
        Some(number) => format!("user {number}"),
        None => return Found::unknown("/proc/self/status cannot be read"),
    };
    if lacking.is_empty() {
        return Found::good(format!("{user}, with all capabilities that iosonar uses"));
    }
    let is_root = user == "root";
    let what = format!("{user}, without {}", lacking.join(", "));
    let change = if is_root {
        let change = "to record and to isolate replays, give the container these capabilities";
        Change::without_command(Effect::Feature, change)
    } else {
        let command = "sudo \"$(command -v iosonar)\" replay --isolate …";
        Change::new(Effect::Feature, "to isolate a replay or to write to a device, run it as root", command, NOT)
    };
    Found::missing(what, change)
}

const NOT: Trial = Trial::Not("a process cannot become root");

/// Of all trials: they change settings of the machine, and save the old ones first.
pub const NEEDS_ROOT: &str = "it needs root";

/// Why this process can try no change.
pub fn bar_to_trials(host: &Host) -> Option<&'static str> {
    if host.status("Uid").is_none_or(|ids| ids.split_whitespace().nth(1) != Some("0")) {
        return Some(NEEDS_ROOT);
    }
    (!lacking(host, &[Capability::SysAdmin]).is_empty()).then_some("it needs CAP_SYS_ADMIN")
}

/// The names of those of the capabilities that this process lacks.
pub fn lacking(host: &Host, wanted: &[Capability]) -> Vec<&'static str> {
    let effective = host.status("CapEff").and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or_default();
    wanted.iter().filter(|&&one| effective & (1 << one as u64) == 0).map(|one| one.name()).collect()
}
