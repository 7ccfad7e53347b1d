//! A description of the machine for a run's footer. `docs/schema.md` lists the keys.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use iosonar_trace::run_info::{IdleState, Machine, ProcessLimits};
use rustix::process::{Resource, getrlimit};

/// Everything about the machine that can affect a measurement. Values that this machine does not have are null.
pub fn snapshot() -> Machine {
    Machine {
        kernel: read("/proc/sys/kernel/osrelease").into(),
        kernel_version: read("/proc/sys/kernel/version").into(),
        kernel_command_line: read("/proc/cmdline").into(),
        hostname: read("/proc/sys/kernel/hostname").into(),
        processor: processor().into(),
        cpus: std::thread::available_parallelism().map(usize::from).ok().into(),
        cpus_online: read("/sys/devices/system/cpu/online").into(),
        cpus_isolated: read("/sys/devices/system/cpu/isolated").into(),
        memory_kib: memory_kib().into(),
        governor: governors(Path::new("/sys/devices/system/cpu")).into(),
        idle_driver: read("/sys/devices/system/cpu/cpuidle/current_driver").into(),
        idle_governor: read("/sys/devices/system/cpu/cpuidle/current_governor_ro").into(),
        idle_states: idle_states(Path::new("/sys/devices/system/cpu/cpu0/cpuidle")).into(),
        transparent_hugepages: read("/sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|line| bracketed(&line))
            .into(),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource").into(),
        limits: ProcessLimits {
            locked_memory_bytes: getrlimit(Resource::Memlock).current.into(),
            open_files: getrlimit(Resource::Nofile).current.into(),
            ..ProcessLimits::default()
        }
        .into(),
        virtualisation: virtualisation().into(),
        ..Machine::default()
    }
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|s| s.trim().to_owned())
}

fn processor() -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split(':').nth(1)?.trim().to_owned())
}

fn memory_kib() -> Option<u64> {
    meminfo_kib("MemTotal:")
}

/// Bytes of memory that programs can have without swapping.
pub fn available_memory() -> Option<u64> {
    meminfo_kib("MemAvailable:")?.checked_mul(1024)
}

fn meminfo_kib(name: &str) -> Option<u64> {
    let text = read("/proc/meminfo")?;
    text.lines().find(|line| line.starts_with(name))?.split_whitespace().nth(1)?.parse().ok()
}

/// Frequency governors of all processors, each once; usually there is one.
pub fn governors(cpus: &Path) -> Option<String> {
    let governor = |cpu: fs::DirEntry| read(cpu.path().join("cpufreq/scaling_governor"));
    let all: BTreeSet<String> = fs::read_dir(cpus).ok()?.flatten().filter_map(governor).collect();
    (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(", "))
}

/// The idle states, from the shallowest to the deepest.
pub fn idle_states(directory: &Path) -> Option<Vec<IdleState>> {
    let states = (0..).map(|n| directory.join(format!("state{n}"))).take_while(|state| state.is_dir());
    let all: Vec<IdleState> = states
        .map(|state| {
            let number = |name: &str| read(state.join(name)).and_then(|text| text.parse::<u64>().ok());
            IdleState {
                name: read(state.join("name")).into(),
                wakes_in_us: number("latency").into(),
                disabled: number("disable").map(|n| n != 0).into(),
                ..IdleState::default()
            }
        })
        .collect();
    (!all.is_empty()).then_some(all)
}

/// The active choice in a line such as `always [madvise] never`.
fn bracketed(line: &str) -> Option<String> {
    Some(line.split('[').nth(1)?.split(']').next()?.to_owned())
}

/// From `systemd-detect-virt`, if it is installed.
fn virtualisation() -> Option<String> {
    let output = Command::new("systemd-detect-virt").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    #[test]
    fn each_governor_is_listed_once() {
        let same = directory(&[
            ("cpu0/cpufreq/scaling_governor", "performance\n"),
            ("cpu1/cpufreq/scaling_governor", "performance\n"),
        ]);
        assert_eq!(governors(same.path()).as_deref(), Some("performance"));
        let mixed = directory(&[
            ("cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("cpu1/cpufreq/scaling_governor", "performance\n"),
        ]);
        assert_eq!(governors(mixed.path()).as_deref(), Some("performance, powersave"));
        assert_eq!(governors(directory(&[("cpu0/online", "1")]).path()), None);
    }

    #[test]
    fn idle_states_are_listed_in_order() {
        let files = [
            ("state0/name", "POLL\n"),
            ("state0/latency", "0\n"),
            ("state0/disable", "0\n"),
            ("state1/name", "C6\n"),
            ("state1/latency", "133\n"),
            ("state1/disable", "1\n"),
        ];
        let states = idle_states(directory(&files).path()).unwrap();
        let values = |state: &IdleState| {
            (state.name.text().map(str::to_owned), state.wakes_in_us.value(), state.disabled.value())
        };
        assert_eq!(values(&states[0]), (Some("POLL".into()), Some(0), Some(false)));
        assert_eq!(values(&states[1]), (Some("C6".into()), Some(133), Some(true)));
        assert_eq!(idle_states(directory(&[]).path()), None);
    }

    #[test]
    fn a_snapshot_has_the_values_that_every_linux_has() {
        let machine = snapshot();
        let texts = [&machine.kernel, &machine.kernel_version, &machine.hostname, &machine.cpus_online];
        assert!(texts.iter().all(|text| text.text().is_some()), "{machine:?}");
        assert!(machine.cpus.value() > Some(0) && machine.memory_kib.value() > Some(0), "{machine:?}");
        assert!(machine.limits.known().unwrap().open_files.value() > Some(0), "{machine:?}");
        assert_eq!(bracketed("always [madvise] never").as_deref(), Some("madvise"));
    }
}
