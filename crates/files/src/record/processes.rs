//! Processes as they are when a recording begins: from `/proc`.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::{Error, Result};
use crate::model::metadata::{InitialDescriptor, InitialProcess};

/// `O_CLOEXEC` as `/proc/PID/fdinfo` shows it, which is in octal.
const CLOSE_ON_EXEC: u64 = libc::O_CLOEXEC as u64;

/// The process that a command becomes: the working directory of this process, and the descriptors that stay open when a
/// child of it executes another program.
pub fn inherited_by_children(process: u32) -> Result<InitialProcess> {
    let mut found = process_with_threads(std::process::id())?;
    found.descriptors.retain(|descriptor| descriptor.flags & CLOSE_ON_EXEC == 0);
    Ok(InitialProcess { process, threads: vec![process], ..found })
}

/// A process with its threads, working directory and descriptors.
pub fn process_with_threads(process: u32) -> Result<InitialProcess> {
    let directory = directory_of(process)?;
    let cannot = |what: &str| {
        let what = what.to_owned();
        move |source| Error::Process { process, what, source }
    };
    let cwd = fs::read_link(directory.join("cwd")).map_err(cannot("cwd"))?;
    let threads = threads_of(process)?;
    let mut descriptors = Vec::new();
    for fd in numbers::<i32>(&directory.join("fd")).map_err(cannot("fd"))? {
        // It may be closed in the meantime, as the descriptor that lists the directory is.
        let Ok(path) = fs::read_link(directory.join(format!("fd/{fd}"))) else { continue };
        let Ok(info) = fs::read_to_string(directory.join(format!("fdinfo/{fd}"))) else { continue };
        let (position, flags) = position_and_flags(&info);
        descriptors.push(InitialDescriptor { fd, path: as_text(path.as_os_str()), flags, position });
    }
    let umask = fs::read_to_string(directory.join("status")).ok().and_then(|status| umask_in(&status));
    Ok(InitialProcess { process, threads, cwd: as_text(cwd.as_os_str()), umask, descriptors })
}

/// Every process but this one. Those that end meanwhile are left out, and threads of the kernel.
///
/// # Errors
/// If `/proc` cannot be read, or shows other numbers than the kernel's.
pub fn all_processes() -> Result<Vec<InitialProcess>> {
    if !is_in_first_pid_namespace() {
        return Err(Error::PidNamespace);
    }
    let all = numbers::<u32>(Path::new("/proc")).map_err(|source| Error::system("cannot read /proc", source))?;
    let others = all.into_iter().filter(|&process| process != std::process::id());
    let found = others.filter_map(|process| process_with_threads(process).ok());
    Ok(found.filter(|process| !process.descriptors.is_empty() || process.cwd != "/").collect())
}

/// Whether the numbers of processes here are those of the kernel (`PROC_PID_INIT_INO`).
pub fn is_in_first_pid_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name == Path::new("pid:[4026531836]"))
}

/// The umask in the text of `/proc/PID/status`. Kernels before 4.7 do not show it.
pub fn umask_in(status: &str) -> Option<u32> {
    let digits = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(digits.trim(), 8).ok()
}

/// The threads of a process.
pub fn threads_of(process: u32) -> Result<Vec<u32>> {
    let what = "task".to_owned();
    numbers(&directory_of(process)?.join("task")).map_err(|source| Error::Process { process, what, source })
}

fn directory_of(process: u32) -> Result<PathBuf> {
    let directory = PathBuf::from(format!("/proc/{process}"));
    if directory.exists() { Ok(directory) } else { Err(Error::NoProcess(process)) }
}

/// The names in a directory that are numbers, in ascending order.
fn numbers<N: std::str::FromStr + Ord>(directory: &Path) -> io::Result<Vec<N>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        found.extend(entry?.file_name().to_str().and_then(|name| name.parse::<N>().ok()));
    }
    found.sort();
    Ok(found)
}

fn position_and_flags(info: &str) -> (u64, u64) {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let position = field("pos:").and_then(|text| text.parse().ok()).unwrap_or(0);
    let flags = field("flags:").and_then(|text| u64::from_str_radix(text, 8).ok()).unwrap_or(0);
    (position, flags)
}

/// A path as tables store it: bytes that are not UTF-8 as `\xNN`, a backslash as `\\`.
fn as_text(path: &OsStr) -> String {
    let mut text = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};

    use super::*;

    #[test]
    fn a_process_has_its_threads_working_directory_and_descriptors() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(100).unwrap();
        file.seek(SeekFrom::Start(42)).unwrap();
        let found = process_with_threads(std::process::id()).unwrap();
        assert!(found.threads.contains(&std::process::id()));
        assert_eq!(found.cwd, std::env::current_dir().unwrap().to_str().unwrap());
        let path = file.path().to_str().unwrap();
        let descriptor = found.descriptors.iter().find(|descriptor| descriptor.path == path).unwrap();
        assert_eq!(descriptor.position, 42);
        assert_eq!(descriptor.flags & libc::O_ACCMODE as u64, libc::O_RDWR as u64);
        assert_ne!(descriptor.flags & CLOSE_ON_EXEC, 0);
        assert!(found.umask.is_some_and(|umask| umask <= 0o777));
        let inherited = inherited_by_children(7).unwrap();
        assert_eq!(inherited.umask, found.umask);
        assert!(inherited.descriptors.iter().all(|descriptor| descriptor.path != path));
        assert_eq!((inherited.process, inherited.threads), (7, vec![7]));
    }

    #[test]
    fn all_processes_are_those_with_files_but_this_one() {
        if !is_in_first_pid_namespace() {
            return;
        }
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let all = all_processes().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(all.iter().any(|process| process.process == child.id()));
        assert!(all.iter().all(|process| process.process != std::process::id()));
    }

    #[test]
    fn the_umask_is_octal() {
        assert_eq!(umask_in("Name:\tsh\nUmask:\t0027\nState:\tR\n"), Some(0o27));
        assert_eq!(umask_in("Name:\tsh\n"), None);
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        assert!(matches!(process_with_threads(u32::MAX), Err(Error::NoProcess(u32::MAX))));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_escaped() {
        assert_eq!(as_text(OsStr::from_bytes(b"/a\\b\xff\xc3\xa4")), "/a\\\\b\\xff\u{e4}");
    }
}
