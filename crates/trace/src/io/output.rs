//! The bytes of a file that is written. It grows under a temporary name beside the final one and is renamed when it is
//! whole and on stable storage, so that a file under its final name is never a part of one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::io::atomic_file::AtomicFile;
pub use crate::io::atomic_file::{Existing, give_name, remove_unfinished};
pub use crate::io::checkpoint::{final_name, recover};
use crate::io::gzip::Members;
use crate::io::input::Compression;

/// A file that is being written, compressed as its name says (`.gz`, `.zst`), or standard output for `-`.
pub struct Output {
    place: Place,
    encoder: Encoder,
}

/// Where an output is.
#[derive(Clone)]
pub struct Place {
    /// The final name.
    path: PathBuf,
    /// Where what was written stays, whatever comes.
    kept_as: Option<PathBuf>,
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
    AtomicFile(AtomicFile),
}

/// Asks whether a file of that name can be begun, by beginning it; nothing of it stays.
///
/// # Errors
/// As for [`Output::create`].
pub fn try_name(path: &Path) -> Result<()> {
    Output::create(path).map(drop)
}

impl Output {
    /// Starts a file of that name. One that is there already is replaced in the end; one that appears meanwhile is not, and
    /// [`Output::finish`] tells under which other name the new one is then.
    ///
    /// # Errors
    /// If there can be no such file: its folder is missing, it is a folder itself, or a link that leads nowhere.
    pub fn create(path: &Path) -> Result<Self> {
        Self::create_as(path, Existing::default())
    }

    /// The same with a choice.
    ///
    /// # Errors
    /// As above.
    pub fn create_as(path: &Path, existing: Existing) -> Result<Self> {
        let wrap = |e| Error::io(path, e);
        let sink = BufWriter::with_capacity(256 * 1024, Sink::open(path, existing).map_err(wrap)?);
        let encoder = match split_compression(path).1 {
            Compression::None => Encoder::Plain(sink),
            Compression::Gzip => Encoder::Gzip(Members::new(sink)),
            Compression::Zstd => Encoder::Zstd(zstd::Encoder::new(sink, 3).map_err(wrap)?),
        };
        Ok(Self { place: Place::new(path), encoder })
    }

    /// An open file or pipe, which is called `path` in messages, plain.
    pub fn of_file(path: &Path, file: File) -> Self {
        let sink = BufWriter::with_capacity(256 * 1024, Sink::Special(file));
        Self { place: Place::new(path), encoder: Encoder::Plain(sink) }
    }

    /// Its final name.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Hands everything so far to the system. From now on it stays under a hidden name, whatever becomes of this program
    /// and of what is still to come. `end`, if it is not empty, stands behind it until it is kept again, with another end,
    /// or finished: it makes a whole file of a part. Until then what is written waits in memory. What is packed can have
    /// no end, and is not kept if it needs one.
    pub fn keep(&mut self, end: Vec<u8>) -> Result<()> {
        if !end.is_empty() && !matches!(self.encoder, Encoder::Plain(_)) {
            return Ok(());
        }
        let flushed = self.flush();
        let sink = match &mut self.encoder {
            Encoder::Plain(sink) => sink.get_mut(),
            Encoder::Gzip(encoder) => encoder.get_mut().get_mut(),
            Encoder::Zstd(encoder) => encoder.get_mut().get_mut(),
        };
        let kept = flushed.and_then(|()| match sink {
            Sink::AtomicFile(file) => file.keep(end).map(Some),
            Sink::Stdout(_) | Sink::Special(_) => Ok(None),
        });
        self.place.kept_as = kept.map_err(|e| self.place.error(e))?;
        Ok(())
    }

    /// An error of the system on it, with where what was written until then is, if it was kept.
    pub fn error(&self, source: io::Error) -> Error {
        self.place.error(source)
    }

    /// Ends the compression, makes the content durable and gives it its final name.
    pub fn finish(self) -> Result<()> {
        let Self { place, encoder } = self;
        let end = || -> io::Result<()> {
            let buffered = match encoder {
                Encoder::Plain(sink) => sink,
                Encoder::Gzip(encoder) => encoder.finish()?,
                Encoder::Zstd(encoder) => encoder.finish()?,
            };
            buffered.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
        };
        end().map_err(|e| place.error(e))
    }
}

impl Place {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), kept_as: None }
    }

    /// The final name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As [`Output::error`].
    pub fn error(&self, source: io::Error) -> Error {
        let kept = self.kept_as.as_ref().filter(|kept| kept.exists());
        let source = match kept {
            Some(kept) => io::Error::new(
                source.kind(),
                format!(
                    "{source}; what was written until then is kept as {0}: `iosonar recover {0}` gives it its name",
                    kept.display()
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
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "a folder stands under this name"));
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

/// Opens a pipe or a character device. A block device is refused: an output would overwrite what it holds.
fn open_special(path: &Path, status: &fs::Metadata) -> io::Result<File> {
    refuse_block_device(status)?;
    let file = File::options().write(true).open(path)?;
    // The name may stand for something else by now.
    let opened = file.metadata()?;
    refuse_block_device(&opened)?;
    if opened.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name was given to another file meanwhile"));
    }
    Ok(file)
}

/// Refuses a block device as an output.
///
/// # Errors
/// If it is one.
pub fn refuse_block_device(status: &fs::Metadata) -> io::Result<()> {
    if status.file_type().is_block_device() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a block device, and an output would overwrite what it holds: name a file instead",
        ));
    }
    Ok(())
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
            io::Read::read_to_string(&mut crate::io::input::Input::open(&path).unwrap(), &mut content).unwrap();
            assert_eq!(content, "whole");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "something temporary was left behind");
    }

    fn written(path: &Path, content: &str, existing: Existing) -> Result<()> {
        let mut output = Output::create_as(path, existing)?;
        output.write_all(content.as_bytes()).unwrap();
        fs::write(path, "somebody else's").unwrap();
        output.finish()
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_replaced_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.load.gz");
        for (ours, other) in [("one", "a-2.load.gz"), ("another", "a-3.load.gz")] {
            fs::remove_file(&path).ok();
            let said = written(&path, ours, Existing::FromTheStart).unwrap_err().to_string();
            assert!(said.contains("appeared meanwhile") && said.contains(other), "{said}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
            let mut content = String::new();
            let mut kept = crate::io::input::Input::open(&folder.path().join(other)).unwrap();
            io::Read::read_to_string(&mut kept, &mut content).unwrap();
            assert_eq!(content, ours);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "something hidden was left behind");
    }

    #[test]
    fn what_appears_meanwhile_is_replaced_if_that_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.load");
        written(&path, "ours", Existing::Replaced).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
    }

    #[test]
    fn links_are_followed_and_those_that_lead_nowhere_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.load"), folder.path().join("link.load"));
        std::os::unix::fs::symlink("a.load", &link).unwrap();
        let said = Output::create(&link).err().unwrap().to_string();
        assert!(said.contains("symbolic link to a.load"), "{said}");

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
    fn a_missing_folder_is_an_error() {
        assert!(Output::create(Path::new("/nowhere/at/all.load")).is_err());
    }
}
