//! Loop devices over files in memory.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempPath;

/// A loop device over a new sparse file in memory, detached when dropped.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    /// Not open, because a process that has it open for writing counts as a user of the device.
    file: TempPath,
}

impl LoopDevice {
    /// A device of `bytes` bytes with logical blocks of 512 bytes.
    ///
    /// # Panics
    /// If it cannot be set up.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self::with_block_size(bytes, 512)
    }

    /// A device of `bytes` bytes with logical blocks of `block_bytes` bytes.
    ///
    /// # Panics
    /// If it cannot be set up.
    #[must_use]
    pub fn with_block_size(bytes: u64, block_bytes: u32) -> Self {
        let directory = if Path::new("/dev/shm").is_dir() { PathBuf::from("/dev/shm") } else { std::env::temp_dir() };
        let file =
            tempfile::Builder::new().prefix("iosonar-loop-").tempfile_in(directory).expect("a file for the device");
        file.as_file().set_len(bytes).expect("its length");
        let output = Command::new("losetup")
            .args(["--find", "--show", "--partscan", "--direct-io=on", "--sector-size", &block_bytes.to_string()])
            .arg(file.path())
            .output()
            .expect("losetup runs");
        assert!(output.status.success(), "losetup: {}", String::from_utf8_lossy(&output.stderr));
        let path = PathBuf::from(String::from_utf8(output.stdout).expect("a device's name").trim());
        Self { path, file: file.into_temp_path() }
    }

    /// `/dev/loopN`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The backing file of the device.
    #[must_use]
    pub fn backing_file(&self) -> &Path {
        &self.file
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // The kernel detaches a device that is still open at its last close.
        Command::new("losetup").arg("--detach").arg(&self.path).status().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Need, left_out, wait_until};

    #[test]
    fn a_loop_device_has_the_given_size_and_is_detached() {
        if left_out(Need::Loop) {
            return;
        }
        let device = LoopDevice::with_block_size(8 << 20, 4096);
        let name = device.path().file_name().expect("a name").to_owned();
        let in_sys = Path::new("/sys/block").join(name);
        let read = |of: &str| std::fs::read_to_string(in_sys.join(of)).unwrap_or_default().trim().to_owned();
        assert_eq!(read("size"), "16384");
        assert_eq!(read("queue/logical_block_size"), "4096");
        let backing = device.backing_file().to_string_lossy().into_owned();
        drop(device);
        wait_until("it is detached", || read("loop/backing_file") != backing);
    }
}
