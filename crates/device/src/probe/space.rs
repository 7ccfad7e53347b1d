//! How much space storage uses, where something tells.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{fstatvfs, syncfs};

use crate::{Device, Kind, mounts, sysfs};

/// What tells the space that is used.
#[derive(Debug)]
pub enum Space {
    /// A compressed RAM disk: its directory in sysfs.
    Zram(PathBuf),
    /// The blocks of a file.
    Blocks(File, String),
    /// The used space of a file system whose files do not tell theirs.
    FileSystem(File, String),
    /// A command that prints it in bytes.
    Command(String),
}

/// File systems whose files report blocks before compression.
const OF_FILE_SYSTEM: [&str; 2] = ["btrfs", "bcachefs"];

impl Space {
    /// Of this device or file; `None` if nothing tells.
    pub fn of(device: &Device) -> Option<Self> {
        match device.kind {
            Kind::File => Self::of_file(&device.path),
            Kind::Block => {
                let directory = sysfs::disk(device.file.metadata().ok()?.rdev());
                let backing = fs::read_to_string(directory.join("loop/backing_file"));
                match backing {
                    Ok(path) => Self::of_file(Path::new(path.trim_end_matches('\n'))),
                    Err(_) => directory.join("mm_stat").exists().then_some(Self::Zram(directory)),
                }
            }
            Kind::None => None,
        }
    }

    fn of_file(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let file = File::open(&path).ok()?;
        let file_system = mounts::of(&path)?.file_system;
        Some(match OF_FILE_SYSTEM.contains(&file_system.as_str()) {
            true => Self::FileSystem(file, file_system),
            false => Self::Blocks(file, file_system),
        })
    }

    /// What it is, for people.
    pub fn name(&self) -> String {
        match self {
            Self::Zram(_) => "zram's statistics".into(),
            Self::Blocks(_, file_system) => format!("blocks of the file on {file_system}"),
            Self::FileSystem(_, file_system) => format!("used space of {file_system}"),
            Self::Command(command) => format!("`{command}`"),
        }
    }

    /// Whether it knows nothing of the layers below.
    pub fn is_of_files(&self) -> bool {
        matches!(self, Self::Blocks(..) | Self::FileSystem(..))
    }

    /// Bytes used now.
    pub fn used(&self) -> Option<u64> {
        match self {
            // The size after compression; pages that repeat a word have none.
            Self::Zram(directory) => {
                let text = fs::read_to_string(directory.join("mm_stat")).ok()?;
                text.split_whitespace().nth(1)?.parse().ok()
            }
            Self::Blocks(file, _) => {
                syncfs(file).ok()?;
                Some(file.metadata().ok()?.blocks() * 512)
            }
            Self::FileSystem(file, _) => {
                syncfs(file).ok()?;
                let found = fstatvfs(file).ok()?;
                Some((found.f_blocks - found.f_bfree) * found.f_frsize)
            }
            Self::Command(command) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::inherit());
                let output = shell.output().ok().filter(|output| output.status.success())?;
                String::from_utf8(output.stdout).ok()?.trim().parse().ok()
            }
        }
    }
}
