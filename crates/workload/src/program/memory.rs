//! The memory that filaments need: a program that asks for more than there is, is refused before it fills the machine.

use std::fs;

use iosonar_trace::human;

/// Refuses a program whose filaments need about so many bytes, if these are not available.
pub(super) fn check(needed: u64) -> Result<(), String> {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    refuse(needed, available(&meminfo))
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
    fn what_does_not_fit_is_refused() {
        let available = available("MemTotal:  24 kB\nMemAvailable:    2048 kB\n");
        assert_eq!(available, Some(2 << 20));
        assert_eq!(refuse(2 << 20, available), Ok(()));
        assert!(refuse(3 << 20, available).unwrap_err().contains("about 3 MiB of memory, and 2 MiB are available"));
        assert_eq!(refuse(u64::MAX, None), Ok(()));
    }
}
