//! Destructive by nature, careful by habit: what is in use is never overwritten, and what carries data that someone
//! would miss only if forced.
//!
//! | refused | how it is known |
//! |---|---|
//! | mounted, itself or a partition of it | `/proc/self/mountinfo` |
//! | swap | `/proc/swaps` |
//! | part of LVM, RAID, multipath, … | holders in sysfs |
//! | a file or device behind a loop device | `loop/backing_file` in sysfs |
//! | anything else that claimed it | opening with `O_EXCL` fails |
//! | carries a signature (file system, LVM, RAID, partition table, …), unless forced | `wipefs --no-act` of util-linux |

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use super::{Kind, mounts, sysfs};
use crate::error::{Error, Result};

/// Refuses what must not be overwritten.
pub fn check(path: &Path, kind: Kind, meta: &Metadata, force: bool) -> Result<()> {
    let refuse = |reason: String| Err(Error::Unsafe { path: path.to_owned(), reason });
    if let Some(user) = users(kind, meta).first() {
        return refuse(format!("{user}; a target in use is never overwritten, not even with --force"));
    }
    if force {
        return Ok(());
    }
    if let Err(error) = std::fs::File::open(path)
        && error.kind() == std::io::ErrorKind::PermissionDenied
    {
        return refuse(
            "may not be opened by this user: run iosonar as root, or join the group that the device has".into(),
        );
    }
    match signatures(path) {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(found) => refuse(format!(
            "carries {}; overwriting it would destroy that. Use --force if it may go, or `wipefs --all {}` first",
            found.join(", "),
            path.display()
        )),
        Err(why) => refuse(format!(
            "can't be searched for file systems and the like ({why}); install util-linux, or use --force if you know that \
             nothing of value is there"
        )),
    }
}

/// Who uses it, a sentence for each; empty if nobody does.
pub fn users(kind: Kind, meta: &Metadata) -> Vec<String> {
    match kind {
        Kind::Block => users_of_block(meta.rdev()),
        Kind::File => users_of_file(meta),
        Kind::None => Vec::new(),
    }
}

fn users_of_block(rdev: u64) -> Vec<String> {
    let mounted = mounts::all();
    let swaps: Vec<u64> = swaps().iter().filter_map(|s| Some(fs::metadata(s).ok()?.rdev())).collect();
    let parts = sysfs::partitions(rdev).into_iter().map(|(part, name)| (part, format!("its partition {name} is ")));
    let mut users = Vec::new();
    for (device, whose) in std::iter::once((rdev, String::new())).chain(parts) {
        users.extend(mounted.iter().filter(|m| m.is_of(device)).map(|m| format!("{whose}mounted on {}", m.place)));
        if swaps.contains(&device) {
            users.push(format!("{whose}in use as swap"));
        }
        users.extend(sysfs::holders(device).iter().map(|holder| format!("{whose}held by {holder}")));
        // A loop device does not claim what it stands on.
        users.extend(behind_loop(|backing| backing.rdev() == device).map(|user| format!("{whose}{user}")));
    }
    users
}

fn users_of_file(meta: &Metadata) -> Vec<String> {
    let is_swap = swaps().iter().any(|swap| fs::metadata(swap).is_ok_and(|m| is_same(&m, meta)));
    let mut users: Vec<String> = is_swap.then(|| "in use as swap".into()).into_iter().collect();
    users.extend(behind_loop(|backing| is_same(backing, meta)));
    users
}

/// Whether it is the same file, under whatever name.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The loop device that has this behind it, as a sentence.
fn behind_loop(is_it: impl Fn(&Metadata) -> bool) -> Option<String> {
    for device in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let backing = fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        if fs::metadata(backing.trim_end_matches('\n')).is_ok_and(|backing| is_it(&backing)) {
            return Some(format!("behind /dev/{}", device.file_name().to_string_lossy()));
        }
    }
    None
}

fn swaps() -> Vec<String> {
    let text = fs::read_to_string("/proc/swaps").unwrap_or_default();
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// What is found on it, such as `ext4 "home"`. An error says why that is not known.
pub fn signatures(path: &Path) -> std::result::Result<Vec<String>, String> {
    let output = Command::new("wipefs")
        .args(["--no-act", "--json", "--output", "TYPE,LABEL"])
        .arg(path)
        .output()
        .map_err(|e| format!("wipefs: {e}"))?;
    if !output.status.success() {
        return Err(format!("wipefs: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    if output.stdout.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|e| format!("wipefs: {e}"))?;
    let list = found["signatures"].as_array().cloned().unwrap_or_default();
    Ok(list
        .iter()
        .map(|s| {
            let kind = s["type"].as_str().unwrap_or("something unknown");
            s["label"].as_str().map_or_else(|| kind.to_owned(), |label| format!("{kind} \"{label}\""))
        })
        .collect())
}
