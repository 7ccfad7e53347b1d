//! What can be known before a run to make its result worthless.

use std::path::Path;

use iosonar_trace::SECTOR_BYTES;
use iosonar_trace::human::{block, percent};
use iosonar_trace::run_info::Queue;

use crate::device::sample::Sampled;

/// Above this share of zeroes, at least, a target looks as if it had never been written.
pub const NOTABLE_ZERO_SHARE: f64 = 0.02;

/// A scheduler reorders and delays what is to be measured.
pub fn scheduler(disk: &str, queue: &Queue) -> Option<String> {
    let active = queue.scheduler.as_deref().filter(|&name| name != "none")?;
    Some(format!(
        "the scheduler of {disk} is {active}, which may reorder requests and hold them back; \
         `iosonar device scheduler /dev/{disk} none` lets the device itself be measured"
    ))
}

/// Areas that were never written answer without the medium.
pub fn never_written(target: &Path, seen: &Sampled) -> Option<String> {
    let [low, high] = seen.zero_share_95;
    if seen.samples == 0 || low < NOTABLE_ZERO_SHARE {
        return None;
    }
    let share = if seen.exact {
        percent(seen.zero_share)
    } else {
        format!("about {} ({} to {})", percent(seen.zero_share), percent(low), percent(high))
    };
    Some(fill_advice(target, &share))
}

/// What to do about such a share.
pub fn fill_advice(target: &Path, share: &str) -> String {
    let target = target.display();
    format!(
        "{share} of {target} is all zero: areas that were never written answer too fast; fill it with data before you \
         measure it, by `iosonar device wipe {target}`"
    )
}

/// The size of the device that a load was recorded on, in sectors, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadExtent {
    /// Its size.
    DeviceSize(u64),
    /// The end of the highest request: a lower bound.
    AtLeast(u64),
}

/// On a target of another size than the original, other places are near each other.
pub fn size(target_sectors: u64, extent: LoadExtent) -> Option<String> {
    let (original, of) = match extent {
        LoadExtent::DeviceSize(sectors) => (sectors, "the load came from a device of"),
        LoadExtent::AtLeast(sectors) => (sectors, "the load reaches up to"),
    };
    let factor = original as f64 / target_sectors.max(1) as f64;
    let said = format!("{of} {}, and the target has {}", size_of(original), size_of(target_sectors));
    if factor > 1.1 {
        return Some(format!(
            "{said}: requests beyond its end wrap around, so the same places are hit more often and caches look better \
             than they are; use a target of about the original's size"
        ));
    }
    (original > 0 && factor < 0.5).then(|| {
        format!(
            "{said}: all requests lie close together there, so disks seek less and caches look better than they are; \
             `--edit 'spread …'` (docs/transforms.md) or a smaller target come closer to the original"
        )
    })
}

fn size_of(sectors: u64) -> String {
    block(sectors.saturating_mul(SECTOR_BYTES))
}

/// What is longer than the queue allows reaches the device in pieces.
pub fn splitting(disk: &str, longest_bytes: u64, queue: &Queue) -> Option<String> {
    let most_kib = queue.max_sectors_kb?;
    if longest_bytes <= most_kib << 10 {
        return None;
    }
    let hardware_kib = queue.max_hw_sectors_kb.unwrap_or(most_kib);
    let mend = if hardware_kib << 10 >= longest_bytes {
        format!("`echo {} > /sys/block/{disk}/queue/max_sectors_kb` allows them whole", longest_bytes.div_ceil(1024))
    } else {
        "the device itself takes no longer ones".to_owned()
    };
    Some(format!(
        "the load has requests of up to {} KiB, and the kernel splits what is longer than {} on {disk}; their latency is that \
         of all pieces. {mend}",
        longest_bytes.div_ceil(1024),
        block(most_kib << 10)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(scheduler: &str) -> Queue {
        Queue {
            scheduler: Some(scheduler.into()),
            max_sectors_kb: Some(512),
            max_hw_sectors_kb: Some(1024),
            ..Queue::default()
        }
    }

    fn sampled(zero: u64, samples: u64, zero_share_95: [f64; 2], exact: bool) -> Sampled {
        Sampled {
            block_bytes: 4096,
            samples,
            zero,
            errors: 0,
            exact,
            zero_share: zero as f64 / samples.max(1) as f64,
            zero_share_95,
            map: String::new(),
            zero_us: None,
            data_us: None,
        }
    }

    #[test]
    fn only_a_scheduler_that_schedules_is_warned_of() {
        assert_eq!(scheduler("sda", &queue("none")), None);
        assert_eq!(scheduler("sda", &Queue::default()), None, "unknown");
        let said = scheduler("sda", &queue("bfq")).unwrap();
        assert!(said.contains("is bfq") && said.contains("iosonar device scheduler /dev/sda none"), "{said}");
    }

    #[test]
    fn zeroes_are_warned_of_when_they_are_certain() {
        let say = |seen| never_written(Path::new("/dev/sdb"), &seen);
        assert_eq!(say(sampled(0, 0, [0.0, 1.0], false)), None, "nothing read");
        assert_eq!(say(sampled(1, 100, [0.0018, 0.0545], false)), None, "may be data that is zero");
        let said = say(sampled(62, 100, [0.522, 0.709], false)).unwrap();
        assert!(said.starts_with("about 62.0 % (52.2 % to 70.9 %) of /dev/sdb is all zero"), "{said}");
        let said = say(sampled(3, 10, [0.3, 0.3], true)).unwrap();
        assert!(said.starts_with("30.0 % of /dev/sdb"), "{said}");
    }

    #[test]
    fn what_will_be_split_is_said_with_what_can_be_done() {
        assert_eq!(splitting("sda", 512 << 10, &queue("none")), None);
        assert_eq!(splitting("sda", 1 << 30, &Queue::default()), None, "unknown");
        let said = splitting("sda", (512 << 10) + 512, &queue("none")).unwrap();
        assert!(said.contains("up to 513 KiB") && said.contains("echo 513 >"), "{said}");
        assert!(splitting("sda", 2 << 20, &queue("none")).unwrap().contains("the device itself takes no longer ones"));
    }

    #[test]
    fn a_target_of_about_the_right_size_is_not_warned_of() {
        let gb = 1 << 21;
        for (target, reach) in [
            (10, LoadExtent::DeviceSize(10)),
            (10, LoadExtent::AtLeast(6)),
            (10, LoadExtent::DeviceSize(11)),
            (10, LoadExtent::AtLeast(0)),
        ] {
            let reach = match reach {
                LoadExtent::DeviceSize(n) => LoadExtent::DeviceSize(n * gb),
                LoadExtent::AtLeast(n) => LoadExtent::AtLeast(n * gb),
            };
            assert_eq!(size(target * gb, reach), None, "{target} {reach:?}");
        }
        let said = size(gb, LoadExtent::DeviceSize(32 * gb)).unwrap();
        assert!(
            said.contains("came from a device of 32 GiB, and the target has 1 GiB") && said.contains("wrap"),
            "{said}"
        );
        let said = size(100 * gb, LoadExtent::AtLeast(32 * gb)).unwrap();
        assert!(said.contains("reaches up to 32 GiB") && said.contains("close together"), "{said}");
    }
}
