//! Mounts below a root by which calls would reach files outside of it.

use std::path::Path;

use iosonar_replay::device::mounts::{Mount, all};

/// File systems whose files are those of the kernel, wherever they are mounted. Links in `proc` lead out of any root.
const OF_KERNEL: &[&str] = &[
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "mqueue",
    "proc",
    "pstore",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];

/// Why a directory cannot be a root: files that are mounted below it are outside of it as well.
pub fn leads_out(root: &Path) -> Option<String> {
    let root = root.canonicalize().ok()?;
    leads_out_by(&root, &all())
}

fn leads_out_by(root: &Path, mounts: &[Mount]) -> Option<String> {
    let is_below = |path: &Path| path != root && path.starts_with(root);
    let below = mounts.iter().filter(|mount| is_below(Path::new(&mount.place)));
    below.into_iter().find_map(|mount| {
        let Mount { place, file_system, .. } = mount;
        if OF_KERNEL.contains(&file_system.as_str()) {
            return Some(format!(
                "{place} is a mounted {file_system}, by which paths lead out of the root; unmount it"
            ));
        }
        let outside =
            mounts.iter().filter_map(|other| mount.seen_through(other)).find(|path| !path.starts_with(root))?;
        Some(format!(
            "{place} is mounted below the root, but its files are those of {} as well, which the calls would change; \
             unmount it",
            outside.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use iosonar_replay::device::mounts::parse;

    use super::*;

    fn leads_out_with(mounts: &[&str]) -> Option<String> {
        let text: String = mounts.iter().map(|mount| format!("1 0 {mount}\n")).collect();
        leads_out_by(Path::new("/mnt/root"), &parse(text.as_bytes()))
    }

    #[test]
    fn only_mounts_below_the_root_with_files_outside_lead_out() {
        let system = "8:1 / / rw - ext4 /dev/sda1 rw";
        for harmless in [
            "7:0 / /mnt/root rw - xfs /dev/loop0 rw",
            "7:0 / /mnt/root/var rw - xfs /dev/loop0 rw",
            "8:1 /srv /mnt/rooted rw - ext4 /dev/sda1 rw",
            "8:1 /mnt/root/a /mnt/root/b rw - ext4 /dev/sda1 rw",
        ] {
            assert_eq!(leads_out_with(&[system, harmless]), None);
        }
        let bound = leads_out_with(&[system, "8:1 /srv /mnt/root/a\\040b rw - ext4 /dev/sda1 rw"]).unwrap();
        assert!(
            bound.starts_with("/mnt/root/a b is mounted below the root, but its files are those of /srv"),
            "{bound}"
        );
        let kernel = leads_out_with(&[system, "0:9 / /mnt/root/x rw - proc proc rw"]).unwrap();
        assert!(kernel.starts_with("/mnt/root/x is a mounted proc"), "{kernel}");
    }
}
