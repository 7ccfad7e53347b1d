//! Warnings before a run, about what would distort its result.

use std::path::Path;

use iosonar_device::sample::ZeroSample;
use iosonar_trace::SECTOR_BYTES;
use iosonar_trace::human::{block, percent};
use iosonar_trace::run_info::Queue;

/// From this share of zeros on, a target seems to have never-written areas.
pub const NOTABLE_ZERO_SHARE: f64 = 0.02;

/// Schedulers can reorder and delay requests: one warning for all disks, each with its queue.
pub fn schedulers<'a>(queues: impl IntoIterator<Item = (&'a str, &'a Queue)>) -> Option<String> {
    let mut active: Vec<(&str, &str)> = queues
        .into_iter()
        .filter_map(|(disk, queue)| Some((disk, queue.scheduler.as_deref().filter(|&name| name != "none")?)))
        .collect();
    active.sort_unstable();
    active.dedup();
    let of: Vec<String> = active.iter().map(|(disk, scheduler)| format!("{disk} is {scheduler}")).collect();
    let each: Vec<String> =
        active.iter().map(|(disk, _)| format!("`iosonar device scheduler /dev/{disk} none`")).collect();
    (!active.is_empty()).then(|| {
        format!(
            "the scheduler of {}, which can reorder and delay requests; to measure {} alone, use {}",
            of.join(", of "),
            if active.len() == 1 { "the device" } else { "the devices" },
            each.join(", ")
        )
    })
}

/// Devices can answer reads of never-written areas without accessing the medium.
pub fn never_written(target: &Path, sampled: &ZeroSample) -> Option<String> {
    let [low, high] = sampled.zero_share_95;
    if sampled.samples == 0 || low < NOTABLE_ZERO_SHARE {
        return None;
    }
    let share = if sampled.exact {
        percent(sampled.zero_share)
    } else {
        format!("about {} ({} to {})", percent(sampled.zero_share), percent(low), percent(high))
    };
    Some(fill_advice(target, &share))
}

/// Later runs start with the mappings, caches and free blocks that the earlier ones left.
pub fn repeated(target: &Path) -> String {
    let target = target.display();
    format!(
        "--repeat: later runs find {target} as the earlier ones left it, with other latencies on thin volumes, snapshots and \
         SSDs; to start each run alike, recreate and fill it in between (`iosonar device wipe {target}`), as `iosonar \
         campaign` does"
    )
}

/// Advises to fill a target of which `share` is zeros.
pub fn fill_advice(target: &Path, share: &str) -> String {
    let target = target.display();
    format!(
        "{share} of {target} is all zeros: reads of never-written areas are too fast; fill it with data before you measure: \
         `iosonar device wipe {target}` (destroys its data)"
    )
}

/// The size of the device that a load was recorded on, in sectors, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadExtent {
    /// The size of the device, from the footer.
    DeviceSize(u64),
    /// The end of the highest request: a lower bound.
    AtLeast(u64),
}

impl LoadExtent {
    /// The size, or its lower bound.
    pub fn sectors(self) -> u64 {
        let (Self::DeviceSize(sectors) | Self::AtLeast(sectors)) = self;
        sectors
    }
}

/// A target of another size than the original changes the distances between requests. `is_dense`: they were moved close
/// together on purpose.
pub fn target_size(target_sectors: u64, extent: LoadExtent, is_dense: bool) -> Option<String> {
    let original_sectors = extent.sectors();
    let subject = match extent {
        LoadExtent::DeviceSize(_) => "the load came from a device of",
        LoadExtent::AtLeast(_) => "the load reaches up to",
    };
    let factor = original_sectors as f64 / target_sectors.max(1) as f64;
    let sizes = format!("{subject} {}, but the target has {}", size(original_sectors), size(target_sectors));
    if factor > 1.1 {
        return Some(format!(
            "{sizes}: requests beyond its end wrap around, so the same sectors are accessed more often and caches look \
             better than they are; use a target of about the original's size"
        ));
    }
    (original_sectors > 0 && factor < 0.5 && !is_dense).then(|| {
        format!(
            "{sizes}: all requests are close together there, so disks seek less and caches look better than they are; \
             `--edit 'spread …'` (docs/transforms.md) or a smaller target is closer to the original"
        )
    })
}

fn size(sectors: u64) -> String {
    block(sectors.saturating_mul(SECTOR_BYTES))
}

/// The kernel splits requests longer than the queue's limit.
pub fn splitting(disk: &str, longest_bytes: u64, queue: &Queue) -> Option<String> {
    let limit_kib = queue.max_sectors_kb?;
    if longest_bytes <= limit_kib << 10 {
        return None;
    }
    let hardware_kib = queue.max_hw_sectors_kb.unwrap_or(limit_kib);
    let remedy = if hardware_kib << 10 >= longest_bytes {
        format!("to avoid that: `echo {} > /sys/block/{disk}/queue/max_sectors_kb`", longest_bytes.div_ceil(1024))
    } else {
        "the device does not support longer ones".to_owned()
    };
    // Exact, as it may be just above the limit.
    let longest = match longest_bytes % (1 << 20) {
        0 => block(longest_bytes),
        _ => format!("{} KiB", longest_bytes.div_ceil(1024)),
    };
    Some(format!(
        "the load has requests of up to {longest}, but the kernel splits requests longer than {} on {disk}; their latency is that \
         of all parts; {remedy}",
        block(limit_kib << 10)
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

    fn sampled(zero: u64, samples: u64, zero_share_95: [f64; 2], exact: bool) -> ZeroSample {
        ZeroSample {
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
    fn warns_once_of_all_schedulers_but_none() {
        let of = |all: &[(&str, &str)]| {
            let queues: Vec<_> = all.iter().map(|&(disk, name)| (disk, queue(name))).collect();
            schedulers(queues.iter().map(|(disk, queue)| (*disk, queue)))
        };
        assert_eq!(of(&[("sda", "none")]), None);
        assert_eq!(schedulers([("sda", &Queue::default())]), None, "unknown");
        let warning = of(&[("sda", "bfq")]).unwrap();
        assert!(warning.contains("is bfq") && warning.contains("iosonar device scheduler /dev/sda none"), "{warning}");
        // A disk can be the target of several partitions.
        let warning = of(&[("sdb", "kyber"), ("sdc", "none"), ("sda", "bfq"), ("sda", "bfq")]).unwrap();
        assert!(warning.contains("the scheduler of sda is bfq, of sdb is kyber, which"), "{warning}");
    }

    #[test]
    fn warns_of_zeros_if_they_are_significant() {
        let warn = |sampled| never_written(Path::new("/dev/sdb"), &sampled);
        assert_eq!(warn(sampled(0, 0, [0.0, 1.0], false)), None, "no samples");
        assert_eq!(warn(sampled(1, 100, [0.0018, 0.0545], false)), None, "may be data that happens to be zero");
        let warning = warn(sampled(62, 100, [0.522, 0.709], false)).unwrap();
        assert!(warning.starts_with("about 62.0 % (52.2 % to 70.9 %) of /dev/sdb is all zeros"), "{warning}");
        let warning = warn(sampled(3, 10, [0.3, 0.3], true)).unwrap();
        assert!(warning.starts_with("30.0 % of /dev/sdb"), "{warning}");
    }

    #[test]
    fn warns_of_splitting_with_a_remedy() {
        assert_eq!(splitting("sda", 512 << 10, &queue("none")), None);
        assert_eq!(splitting("sda", 1 << 30, &Queue::default()), None, "unknown");
        let warning = splitting("sda", (512 << 10) + 512, &queue("none")).unwrap();
        assert!(warning.contains("up to 513 KiB") && warning.contains("echo 513 >"), "{warning}");
        let warning = splitting("sda", 2 << 20, &queue("none")).unwrap();
        assert!(warning.contains("up to 2 MiB,") && warning.contains("does not support longer ones"), "{warning}");
    }

    #[test]
    fn warns_of_a_target_much_smaller_or_larger_than_the_original() {
        let gb = 1 << 21;
        for extent in [
            LoadExtent::DeviceSize(10 * gb),
            LoadExtent::AtLeast(6 * gb),
            LoadExtent::DeviceSize(11 * gb),
            LoadExtent::AtLeast(0),
        ] {
            assert_eq!(target_size(10 * gb, extent, false), None, "{extent:?}");
        }
        let warning = target_size(gb, LoadExtent::DeviceSize(32 * gb), true).unwrap();
        assert!(
            warning.contains("came from a device of 32 GiB, but the target has 1 GiB") && warning.contains("wrap"),
            "{warning}"
        );
        let warning = target_size(100 * gb, LoadExtent::AtLeast(32 * gb), false).unwrap();
        assert!(warning.contains("reaches up to 32 GiB") && warning.contains("close together"), "{warning}");
        assert_eq!(target_size(100 * gb, LoadExtent::AtLeast(32 * gb), true), None, "on purpose");
    }
}
