//! Output files. A file is written under a hidden name and renamed when it is complete and on stable storage, so that a
//! file under its final name is always complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::io::atomic_file::AtomicFile;
pub use crate::io::atomic_file::{Existing, give_name, remove_unfinished};
pub use crate::io::checkpoint::{CheckpointSchedule, becomes_free, final_name, recover};
use crate::io::gzip::GzipWriter;
use crate::io::input::Compression;

/// A file that is being written, compressed if its name ends in `.gz` or `.zst`; or standard output for `-`.
pub struct Output {
    location: Location,
    encoder: Encoder,
}

/// Where an output is while it is written, and afterwards.
#[derive(Clone)]
pub struct Location {
    path: PathBuf,
    /// The hidden name, if there is a checkpoint.
    checkpoint: Option<PathBuf>,
}

enum Encoder {
    Plain(BufWriter<Sink>),
    Gzip(GzipWriter<BufWriter<Sink>>),
    Zstd(zstd::Encoder<'static, BufWriter<Sink>>),
}

enum Sink {
    Stdout(io::Stdout),
    /// A pipe or a character device, which a rename must not replace.
    Special(File),
    AtomicFile(AtomicFile),
}

/// Checks that an output of this name can be created, by creating and removing one.
///
/// # Errors
/// As for [`Output::create`].
pub fn try_create(path: &Path) -> Result<()> {
    Output::create(path).map(drop)
}

impl Output {
    /// Creates an output. [`Output::finish`] replaces a file of this name that exists now. It does not replace one that
    /// appears later: it then fails, and names the file that has the output.
    ///
    /// # Errors
    /// If the file cannot be created: its directory is missing, or its name is that of a directory or of a dangling link.
    pub fn create(path: &Path) -> Result<Self> {
        Self::create_as(path, Existing::default())
    }

    /// Like [`Output::create`], with a choice of what happens to an existing file.
    ///
    /// # Errors
    /// As for [`Output::create`].
    pub fn create_as(path: &Path, existing: Existing) -> Result<Self> {
        let wrap = |e| Error::io(path, e);
        let sink = BufWriter::with_capacity(256 * 1024, Sink::open(path, existing).map_err(wrap)?);
        let encoder = match split_compression(path).1 {
            Compression::None => Encoder::Plain(sink),
            Compression::Gzip => Encoder::Gzip(GzipWriter::new(sink)),
            Compression::Zstd => Encoder::Zstd(zstd::Encoder::new(sink, 3).map_err(wrap)?),
        };
        Ok(Self { location: Location::new(path), encoder })
    }

    /// Writes to an open file or pipe, without compression. `path` names it in messages.
    pub fn of_file(path: &Path, file: File) -> Self {
        let sink = BufWriter::with_capacity(256 * 1024, Sink::Special(file));
        Self { location: Location::new(path), encoder: Encoder::Plain(sink) }
    }

    /// The name that it has once it is finished.
    pub fn path(&self) -> &Path {
        &self.location.path
    }

    /// Where it is while it is written, and afterwards.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Writes all data so far to the file. From now on the file stays under its hidden name, even if this program is killed
    /// or writing fails later. `footer` is appended to make the part a readable file. If it is not empty, further data stays
    /// in memory until the next checkpoint or [`Output::finish`]. A compressed file cannot have such a footer; then this does
    /// nothing.
    pub fn checkpoint(&mut self, footer: Vec<u8>) -> Result<()> {
        if !footer.is_empty() && !matches!(self.encoder, Encoder::Plain(_)) {
            return Ok(());
        }
        let flushed = self.flush();
        let sink = match &mut self.encoder {
            Encoder::Plain(sink) => sink.get_mut(),
            Encoder::Gzip(encoder) => encoder.get_mut().get_mut(),
            Encoder::Zstd(encoder) => encoder.get_mut().get_mut(),
        };
        let hidden = flushed.and_then(|()| match sink {
            Sink::AtomicFile(file) => file.checkpoint(footer).map(Some),
            Sink::Stdout(_) | Sink::Special(_) => Ok(None),
        });
        self.location.checkpoint = hidden.map_err(|e| self.location.error(e))?;
        Ok(())
    }

    /// The hidden name of an uncompressed file.
    pub fn hidden(&self) -> Option<&Path> {
        match &self.encoder {
            Encoder::Plain(sink) => match sink.get_ref() {
                Sink::AtomicFile(file) => file.hidden(),
                Sink::Stdout(_) | Sink::Special(_) => None,
            },
            Encoder::Gzip(_) | Encoder::Zstd(_) => None,
        }
    }

    /// An I/O error on the output. It names the file with the data so far, if there is a checkpoint.
    pub fn error(&self, source: io::Error) -> Error {
        self.location.error(source)
    }

    /// Ends the compression, makes the content durable and renames the file to its final name.
    pub fn finish(self) -> Result<()> {
        let Self { location, encoder } = self;
        let end = || -> io::Result<()> {
            let buffered = match encoder {
                Encoder::Plain(sink) => sink,
                Encoder::Gzip(encoder) => encoder.finish()?,
                Encoder::Zstd(encoder) => encoder.finish()?,
            };
            buffered.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
        };
        end().map_err(|e| location.error(e))
    }
}

impl Location {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), checkpoint: None }
    }

    /// The name that it has once it is finished.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The hidden name of the data so far, if there is a checkpoint.
    pub fn checkpoint(&self) -> Option<&Path> {
        self.checkpoint.as_deref()
    }

    /// As [`Output::error`].
    pub fn error(&self, source: io::Error) -> Error {
        let checkpoint = self.checkpoint.as_ref().filter(|hidden| hidden.exists());
        let source = match checkpoint {
            Some(hidden) => io::Error::new(
                source.kind(),
                format!(
                    "{source}; the data written so far is kept as {0}: `iosonar recover {0}` gives it its name",
                    hidden.display()
                ),
            ),
            None => source,
        };
        Error::io(&self.path, source)
    }
}

impl Sink {
    fn open(path: &Path, existing: Existing) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout(io::stdout()));
        }
        if let Ok(status) = fs::metadata(path) {
            if status.is_dir() {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "a directory has this name"));
            }
            if !status.is_file() {
                return Ok(Self::Special(open_special(path, &status)?));
            }
        }
        AtomicFile::create(path, existing).map(Self::AtomicFile)
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush(),
            Self::Special(_) => Ok(()),
            Self::AtomicFile(file) => file.finish(),
        }
    }
}

/// Opens a pipe or a character device. A block device is refused: an output would overwrite its content.
fn open_special(path: &Path, status: &fs::Metadata) -> io::Result<File> {
    refuse_block_device(status)?;
    let file = File::options().write(true).open(path)?;
    // Another file may have got the name since `status` was read.
    let opened = file.metadata()?;
    refuse_block_device(&opened)?;
    if opened.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "another file got this name meanwhile"));
    }
    Ok(file)
}

/// Refuses a block device as an output.
///
/// # Errors
/// If `status` is that of a block device.
pub fn refuse_block_device(status: &fs::Metadata) -> io::Result<()> {
    if status.file_type().is_block_device() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a block device, and an output would overwrite its content: name a file instead",
        ));
    }
    Ok(())
}

/// Splits the ending of a compression from a name.
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
            Self::AtomicFile(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Special(file) => file.flush(),
            Self::AtomicFile(file) => file.flush(),
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
    fn a_file_gets_its_final_name_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["plain.load", "packed.load.gz", "packed.load.zst"] {
            let path = directory.path().join(name);
            let mut output = Output::create(&path).unwrap();
            output.write_all(b"half").unwrap();
            drop(output);
            assert!(!path.exists());

            let mut output = Output::create(&path).unwrap();
            output.write_all(b"complete").unwrap();
            output.flush().unwrap();
            assert!(!path.exists());
            output.finish().unwrap();
            let mut content = String::new();
            io::Read::read_to_string(&mut crate::io::input::Input::open(&path).unwrap(), &mut content).unwrap();
            assert_eq!(content, "complete");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "a temporary file was left behind");
    }

    /// Writes an output while another program creates a file of the same name.
    fn written(path: &Path, content: &str, existing: Existing) -> Result<()> {
        let mut output = Output::create_as(path, existing)?;
        output.write_all(content.as_bytes()).unwrap();
        fs::write(path, "another program's").unwrap();
        output.finish()
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.load.gz");
        for (ours, other) in [("one", "a-2.load.gz"), ("another", "a-3.load.gz")] {
            fs::remove_file(&path).ok();
            let error = written(&path, ours, Existing::ReplaceKnown).unwrap_err().to_string();
            assert!(error.contains("appeared meanwhile") && error.contains(other), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "another program's");
            let mut content = String::new();
            let mut output = crate::io::input::Input::open(&directory.path().join(other)).unwrap();
            io::Read::read_to_string(&mut output, &mut content).unwrap();
            assert_eq!(content, ours);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3, "a hidden file was left behind");
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_replaced_with_replace_any() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.load");
        written(&path, "ours", Existing::ReplaceAny).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
    }

    #[test]
    fn links_are_followed_and_dangling_links_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a.load"), directory.path().join("link.load"));
        std::os::unix::fs::symlink("a.load", &link).unwrap();
        let error = Output::create(&link).err().unwrap().to_string();
        assert!(error.contains("symbolic link to a.load"), "{error}");

        fs::write(&file, "old").unwrap();
        let mut output = Output::create(&link).unwrap();
        output.write_all(b"new").unwrap();
        output.finish().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut output = Output::create(Path::new("/dev/full")).unwrap();
        output.write_all(b"x").unwrap();
        assert!(output.finish().is_err());
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        assert!(Output::create(Path::new("/nowhere/at/all.load")).is_err());
    }
}
