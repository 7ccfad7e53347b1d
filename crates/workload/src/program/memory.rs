//! The memory that filaments need: a program that asks for more than there is, is refused before it fills the machine.

use std::fs;

use iosonar_trace::human;

/// Refuses a program whose filaments need about so many bytes, if these are not available.
pub(super) fn check(needed: u64) -> Result<(), String> {
    let read = |file: &str| fs::read_to_string(file).ok();
    let free = read("/proc/meminfo").and_then(|text| available(&text));
    let address_space = read("/proc/self/limits").zip(read("/proc/self/statm"));
    let address_space = address_space.and_then(|(limits, statm)| below_limit(&limits, &statm));
    let group = read("/proc/self/cgroup").and_then(|text| below_group(&text, read));
    refuse(needed, [free, address_space, group].into_iter().flatten().min())
}

/// Bytes of address space that `ulimit -v` leaves; none without a limit.
fn below_limit(limits: &str, statm: &str) -> Option<u64> {
    const PAGE: u64 = 4096;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let used: u64 = statm.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(used * PAGE))
}

/// Bytes that the control group and those above it leave; none without a limit.
fn below_group(groups: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?.trim();
    let number = |file: String| read(&file)?.trim().parse::<u64>().ok();
    let of_group = |group: &std::path::Path| {
        let directory = format!("/sys/fs/cgroup{}", group.display());
        let limit = number(format!("{directory}/memory.max"))?;
        Some(limit.saturating_sub(number(format!("{directory}/memory.current")).unwrap_or(0)))
    };
    std::path::Path::new(own).ancestors().filter_map(of_group).min()
}

fn refuse(needed: u64, available: Option<u64>) -> Result<(), String> {
    match available {
        Some(available) if needed > available => Err(format!(
            "the instances of all streams need about {} of memory, and {} are available; use fewer instances, a smaller \
             depth or a smaller scale",
            human::block(needed),
            human::block(available)
        )),
        _ => Ok(()),
    }
}

/// Bytes that programs can have without swapping.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_the_process_and_its_group_count() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax address space         1048576              unlimited            bytes\n";
        assert_eq!(below_limit(limits, "100 50 1"), Some((1 << 20) - 409_600));
        assert_eq!(
            below_limit("Max address space         unlimited            unlimited            bytes\n", "1"),
            None
        );
        let files = |file: &str| match file {
            "/sys/fs/cgroup/a/b/memory.max" => Some("max\n".into()),
            "/sys/fs/cgroup/a/memory.max" => Some("5000\n".into()),
            "/sys/fs/cgroup/a/memory.current" => Some("2000\n".into()),
            _ => None,
        };
        assert_eq!(below_group("0::/a/b\n", files), Some(3000));
        assert_eq!(below_group("0::/c\n", files), None);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let available = available("MemTotal:  24 kB\nMemAvailable:    2048 kB\n");
        assert_eq!(available, Some(2 << 20));
        assert_eq!(refuse(2 << 20, available), Ok(()));
        assert!(refuse(3 << 20, available).unwrap_err().contains("about 3 MiB of memory, and 2 MiB are available"));
        assert_eq!(refuse(u64::MAX, None), Ok(()));
    }
}
