//! The bytes of a file that is written. It grows under a temporary name beside the final one and is renamed when it is
//! whole and on stable storage, so that a file under its final name is never a part of one.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::gzip::Members;
use crate::input::Compression;

/// A file that is being written, compressed as its name says (`.gz`, `.zst`), or standard output for `-`.
pub struct Output {
    path: PathBuf,
    encoder: Encoder,
}

enum Encoder {
    Plain(BufWriter<Sink>),
    Gzip(Members<BufWriter<Sink>>),
    Zstd(zstd::Encoder<'static, BufWriter<Sink>>),
}

enum Sink {
    Stdout(io::Stdout),
    /// A pipe or a character device, which a rename must not replace.
    Special(File),
    Growing(NamedTempFile),
}

impl Output {
    /// Starts a file of that name.
    pub fn create(path: &Path) -> Result<Self> {
        let wrap = |e| Error::io(path, e);
        let sink = BufWriter::with_capacity(256 * 1024, Sink::open(path).map_err(wrap)?);
        let encoder = match split_compression(path).1 {
            Compression::None => Encoder::Plain(sink),
            Compression::Gzip => Encoder::Gzip(Members::new(sink)),
            Compression::Zstd => Encoder::Zstd(zstd::Encoder::new(sink, 3).map_err(wrap)?),
        };
        Ok(Self { path: path.to_owned(), encoder })
    }

    /// An open file or pipe, which is called `path` in messages, plain.
    pub fn of_file(path: &Path, file: File) -> Self {
        let sink = BufWriter::with_capacity(256 * 1024, Sink::Special(file));
        Self { path: path.to_owned(), encoder: Encoder::Plain(sink) }
    }

    /// Its final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error of the system on it.
    pub fn error(&self, source: io::Error) -> Error {
        Error::io(&self.path, source)
    }

    /// Ends the compression, makes the content durable and gives it its final name.
    pub fn finish(self) -> Result<()> {
        let Self { path, encoder } = self;
        let end = || -> io::Result<()> {
            let buffered = match encoder {
                Encoder::Plain(sink) => sink,
                Encoder::Gzip(encoder) => encoder.finish()?,
                Encoder::Zstd(encoder) => encoder.finish()?,
            };
            buffered.into_inner().map_err(io::IntoInnerError::into_error)?.finish(&path)
        };
        end().map_err(|e| Error::io(&path, e))
    }
}

impl Sink {
    fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout(io::stdout()));
        }
        if let Ok(status) = fs::metadata(path) {
            if status.is_dir() {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "a folder stands under this name"));
            }
            if !status.is_file() {
                return Ok(Self::Special(File::options().write(true).open(path)?));
            }
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // 0o666 is what any program asks for; the umask takes its share.
        let file = tempfile::Builder::new()
            .prefix(&format!(".{name}."))
            .suffix(".partial")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder_of(path))?;
        Ok(Self::Growing(file))
    }

    fn finish(self, path: &Path) -> io::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush(),
            Self::Special(_) => Ok(()),
            Self::Growing(file) => {
                file.as_file().sync_all()?;
                file.persist(path).map_err(|e| e.error)?;
                File::open(folder_of(path))?.sync_all()
            }
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name without the ending of a compression, and that compression.
pub fn split_compression(path: &Path) -> (&Path, Compression) {
    let bytes = path.as_os_str().as_encoded_bytes();
    let compression = match bytes {
        [.., b'.', b'g', b'z'] => Compression::Gzip,
        [.., b'.', b'z', b's', b't'] => Compression::Zstd,
        _ => return (path, Compression::None),
    };
    (path.file_stem().map_or(path, Path::new), compression)
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Special(file) => file.write(bytes),
            Self::Growing(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Special(file) => file.flush(),
            Self::Growing(file) => file.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::Plain(w) => w.write(bytes),
            Encoder::Gzip(w) => w.write(bytes),
            Encoder::Zstd(w) => w.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Plain(w) => w.flush(),
            Encoder::Gzip(w) => w.flush(),
            Encoder::Zstd(w) => w.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_under_its_final_name_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plain.load", "packed.load.gz", "packed.load.zst"] {
            let path = folder.path().join(name);
            let mut output = Output::create(&path).unwrap();
            output.write_all(b"half").unwrap();
            drop(output);
            assert!(!path.exists());

            let mut output = Output::create(&path).unwrap();
            output.write_all(b"whole").unwrap();
            output.flush().unwrap();
            assert!(!path.exists());
            output.finish().unwrap();
            let mut content = String::new();
            io::Read::read_to_string(&mut crate::input::Input::open(&path).unwrap(), &mut content).unwrap();
            assert_eq!(content, "whole");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "something temporary was left behind");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut output = Output::create(Path::new("/dev/full")).unwrap();
        output.write_all(b"x").unwrap();
        assert!(output.finish().is_err());
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        assert!(Output::create(Path::new("/nowhere/at/all.load")).is_err());
    }
}
