//! Directories that cannot be roots: by them, or by what is mounted below them, calls would reach files outside.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use iosonar_device::mounts::{Mount, all};
use rustix::fs::{fstat, fstatfs, stat};

/// File systems whose files are those of the kernel, wherever they are mounted. Links in `proc` lead out of any root; names in
/// others are settings or devices of this machine.
const OF_KERNEL: &[&str] = &[
    "apparmorfs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "cpuset",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "functionfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nfsd",
    "nsfs",
    "openpromfs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "secretmem",
    "securityfs",
    "selinuxfs",
    "smackfs",
    "spufs",
    "sysfs",
    "tracefs",
    "usbfs",
    "xenfs",
];

/// The numbers of such file systems in `statfs` (`linux/magic.h`), for directories of mounts that no list of mounts shows. Those
/// of `devtmpfs` are the numbers of `tmpfs` or `ramfs`.
const MAGIC: &[(u32, &str)] = &[
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x6265_6570, "configfs"),
    (0x7363_6673, "securityfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4341_5d53, "smackfs"),
    (0xcafe_4a11, "bpf"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x1cd1, "devpts"),
    (0xde5e_81e4, "efivarfs"),
    (0x6165_676c, "pstore"),
    (0x6e73_6673, "nsfs"),
    (0x6573_5543, "fusectl"),
    (0x1980_0202, "mqueue"),
    (0x0765_5821, "resctrl"),
    (0x9584_58f6, "hugetlbfs"),
    (0x6c6f_6f70, "binder"),
    (0x5a3c_69f0, "apparmorfs"),
];

/// Why an open directory cannot be a root: it is that of the system, its files are those of the kernel, or files that are
/// mounted below it are outside of it as well. `shown` is its path in messages.
pub fn unfit(directory: BorrowedFd<'_>, shown: &Path) -> Option<String> {
    unfit_by(directory, shown, &all())
}

fn unfit_by(directory: BorrowedFd<'_>, shown: &Path, mounts: &[Mount]) -> Option<String> {
    let dir = shown.display();
    let (own, system) = (fstat(directory).ok()?, stat("/").ok()?);
    if (own.st_dev, own.st_ino) == (system.st_dev, system.st_ino) {
        return Some(format!(
            "{dir} is the root directory of this system, whose files would change; name a directory below it"
        ));
    }
    if let Some(kind) = kernel_file_system(directory, mounts) {
        return Some(format!("{dir} is in a file system of the kernel ({kind}); name an ordinary directory"));
    }
    // Where the directory is, whatever the path means now.
    let path = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd())).ok();
    match path.filter(|_| !mounts.is_empty()) {
        Some(path) => leads_out_by(&path, mounts),
        None => Some(format!("cannot tell what is mounted below {dir}: /proc is not mounted")),
    }
}

/// The kind of the file system that holds a directory or file, if its files are those of the kernel.
fn kernel_file_system(file: BorrowedFd<'_>, mounts: &[Mount]) -> Option<String> {
    let device = fstat(file).ok()?.st_dev;
    let by_mount = mounts.iter().find(|mount| mount.number() == device && is_of_kernel(mount));
    by_mount.map(|mount| mount.file_system.clone()).or_else(|| {
        // A 32-bit number, which some architectures extend with its sign.
        let magic = fstatfs(file).ok()?.f_type as u32;
        MAGIC.iter().find(|(number, _)| *number == magic).map(|(_, name)| (*name).to_owned())
    })
}

/// Whether an open directory or file is one of the kernel.
pub(super) fn is_in_kernel(file: BorrowedFd<'_>) -> bool {
    kernel_file_system(file, &all()).is_some()
}

fn is_of_kernel(mount: &Mount) -> bool {
    OF_KERNEL.contains(&mount.file_system.as_str())
}

/// Where file systems of the kernel are mounted.
pub(super) fn kernel_places() -> Vec<PathBuf> {
    all().into_iter().filter(is_of_kernel).map(|mount| mount.place.into()).collect()
}

fn leads_out_by(root: &Path, mounts: &[Mount]) -> Option<String> {
    let is_below = |path: &Path| path != root && path.starts_with(root);
    let below = mounts.iter().filter(|mount| is_below(Path::new(&mount.place)));
    below.into_iter().find_map(|mount| {
        let Mount { place, file_system, .. } = mount;
        if is_of_kernel(mount) {
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
    use std::fs::File;
    use std::os::fd::AsFd;

    use iosonar_device::mounts::parse;

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

    #[test]
    fn a_directory_of_the_kernel_is_no_root() {
        let none = parse(b"1 0 0:1000 / /nowhere rw - tmpfs tmpfs rw\n");
        for (path, kind) in
            [("/proc", "proc"), ("/proc/self/root/proc/sys", "proc"), ("/sys", "sysfs"), ("/dev/pts", "devpts")]
        {
            let Ok(directory) = File::open(path) else { continue };
            let expected = format!("{path} is in a file system of the kernel ({kind}); name an ordinary directory");
            assert_eq!(unfit(directory.as_fd(), Path::new(path)), Some(expected.clone()));
            // Also if the list of mounts does not show it.
            assert_eq!(unfit_by(directory.as_fd(), Path::new(path), &none), Some(expected));
        }
        let ordinary = tempfile::tempdir().unwrap();
        let directory = File::open(ordinary.path()).unwrap();
        assert_eq!(unfit(directory.as_fd(), ordinary.path()), None);
        let device = std::os::unix::fs::MetadataExt::dev(&directory.metadata().unwrap());
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let devices = parse(format!("1 0 {major}:{minor} / /dev rw - devtmpfs udev rw\n").as_bytes());
        let found = unfit_by(directory.as_fd(), ordinary.path(), &devices).unwrap();
        assert!(found.contains("of the kernel (devtmpfs)"), "{found}");
    }
}
