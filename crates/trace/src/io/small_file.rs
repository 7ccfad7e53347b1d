//! Small files that a user names: programs, scripts, descriptions, maps. They are read as a whole, so they are bounded.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// The most bytes of a small file.
pub const MAX_BYTES: u64 = 16 << 20;

/// The content of a regular file of at most [`MAX_BYTES`]. It neither waits for a pipe nor reads a device without end.
///
/// # Errors
/// If it cannot be read, is not a regular file, or is larger.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    // The opening of a pipe would wait for a writer.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let status = file.metadata()?;
    let kind = status.file_type();
    let what = [
        (kind.is_dir(), "a directory"),
        (kind.is_fifo(), "a pipe"),
        (kind.is_char_device() || kind.is_block_device(), "a device"),
        (!kind.is_file(), "not a regular file"),
    ];
    if let Some((_, what)) = what.into_iter().find(|(is, _)| *is) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}; name a regular file")));
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_BYTES {
        let why = format!("it is larger than {} MiB, the most that such a file may have", MAX_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(content)
}

/// The same as text.
///
/// # Errors
/// Like [`read`], or if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bounded_regular_files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("text"), "a = 1\n").unwrap();
        assert_eq!(read_text(&at("text")).unwrap(), "a = 1\n");
        std::fs::write(at("bytes"), b"\xff").unwrap();
        assert_eq!(read_text(&at("bytes")).unwrap_err().to_string(), "it is not UTF-8 text");
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        std::fs::File::create(at("large")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        for (path, why) in [
            (at("pipe"), "it is a pipe; name a regular file"),
            (directory.path().to_owned(), "it is a directory; name a regular file"),
            ("/dev/zero".into(), "it is a device; name a regular file"),
            (at("large"), "it is larger than 16 MiB, the most that such a file may have"),
        ] {
            assert_eq!(read(&path).unwrap_err().to_string(), why);
        }
        assert_eq!(read(&at("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
