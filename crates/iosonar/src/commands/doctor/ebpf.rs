//! Whether `record` works: eBPF programs with the kernel's type information (BTF).

use super::found::{Change, Effect, Found, Trial};
use super::host::Host;
use super::privileges::{self, Capability};

/// The kernel's type information.
const BTF: &str = "/sys/kernel/btf/vmlinux";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

pub fn check(host: &Host) -> Found {
    if !iosonar_record::is_built() {
        let what = "this build cannot record: clang was missing when it was built";
        return missing(what, "to record, build it again with clang", Some("sudo apt install clang"));
    }
    if !host.path(BTF).exists() {
        return missing(
            "the kernel has no type information (BTF)",
            "to record, use a kernel with CONFIG_DEBUG_INFO_BTF=y",
            None,
        );
    }
    let lockdown = host.read(LOCKDOWN).unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        return missing(
            "the kernel is locked down (confidentiality)",
            "to record, boot with lockdown=integrity or less",
            None,
        );
    }
    let lacking = privileges::lacking(host, &[Capability::Bpf, Capability::Perfmon]);
    if lacking.is_empty() {
        return Found::good("works: BTF, and the right to load programs");
    }
    missing(
        &format!("BTF is there, but this process lacks {}", lacking.join(" and ")),
        "to record, run as root",
        Some("sudo \"$(command -v iosonar)\" record --device DEVICE --output FILE"),
    )
}

fn missing(what: &str, change: &str, command: Option<&str>) -> Found {
    let change = match command {
        Some(command) => {
            Change::new(Effect::Feature, change, command, Trial::Not("recording does not change a replay"))
        }
        None => Change::without_command(Effect::Feature, change),
    };
    Found::missing(what, change)
}
