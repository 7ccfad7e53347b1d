//! `iosonar device scheduler`: shows or sets the I/O scheduler of a device.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use iosonar_device::{mounts, sysfs};

use crate::console::out;

/// Show or set the I/O scheduler of a device, until the next boot
///
/// A partition has the scheduler of its disk. Setting one needs root; the kernel loads its module if necessary.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar device scheduler /dev/sdb           active and available schedulers
  sudo iosonar device scheduler /dev/sdb none")]
pub struct Args {
    /// The block device
    device: PathBuf,
    /// The scheduler to set: none, mq-deadline, kyber, bfq, …
    name: Option<String>,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let rdev = number(&self.device)?;
        let shown = self.device.display();
        let before = sysfs::scheduler(rdev)
            .ok_or_else(|| anyhow!("{shown} has no scheduler: its driver has no request queue"))?;
        let disk = sysfs::disk_name(rdev).unwrap_or_default();
        let of_disk = if self.device.ends_with(&disk) { String::new() } else { format!(" (of {disk})") };
        let Some(name) = self.name else {
            out!("{shown}{of_disk}: {before}; available: {}", sysfs::schedulers(rdev).join(", "));
            return Ok(ExitCode::SUCCESS);
        };
        set(&self.device, rdev, &name)?;
        let changed = if before == name { "already".to_owned() } else { format!("was {before}") };
        out!("{shown}{of_disk}: {name}, {changed}");
        Ok(ExitCode::SUCCESS)
    }
}

/// The device's number. For a file, the error names the disk that stores it.
fn number(path: &Path) -> Result<u64> {
    let meta = path.metadata().with_context(|| path.display().to_string())?;
    if meta.file_type().is_block_device() {
        return Ok(meta.rdev());
    }
    let below = mounts::of(path).and_then(|mount| mount.device()).and_then(sysfs::disk_name);
    let advice = below.map_or(String::new(), |disk| format!("; it is stored on /dev/{disk}: name that device"));
    bail!("{}: not a block device, so it has no scheduler{advice}", path.display());
}

fn set(device: &Path, rdev: u64, name: &str) -> Result<()> {
    let shown = device.display();
    match sysfs::set_scheduler(rdev, name) {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => bail!(
            "{shown}: no scheduler {name:?}; available: {} (others may need a kernel module that is not installed)",
            sysfs::schedulers(rdev).join(", ")
        ),
        Err(e) if matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            bail!("{shown}: {e}; run as root, with /sys writable")
        }
        Err(e) => return Err(e).with_context(|| format!("{shown}: cannot set the scheduler")),
    }
    match sysfs::scheduler(rdev) {
        Some(now) if now == name => Ok(()),
        now => {
            bail!("{shown} accepted the scheduler {name:?}, but reports {}", now.unwrap_or_else(|| "nothing".into()))
        }
    }
}
