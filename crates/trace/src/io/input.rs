//! Input files: plain, gzip or zstd, recognised by their first bytes; or standard input.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::io::gzip::GzipReader;
use crate::io::pipe::Pipe;

/// Bytes at the beginning of the content by which formats recognise a file.
const HEAD_BYTES: u64 = 64 * 1024;

/// Most layers of compression that [`Input::unpacked`] removes.
const MAX_LAYERS: usize = 8;

/// Most entries of a directory that are searched for files of blktrace.
const MAX_ENTRIES: usize = 10_000;

/// Windows programs write it before text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// None.
    None,
    /// gzip, of one or several members.
    Gzip,
    /// Zstandard, of one or several frames.
    Zstd,
}

impl Compression {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    fn recognise(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// The decompressed content of a file. Where the compressed data is cut short or damaged, `read` ends early and
/// [`Input::damage`] has the reason. So everything readable is read, but is not taken for the whole content.
pub struct Input {
    path: PathBuf,
    compression: Compression,
    head: Vec<u8>,
    /// Bytes of `head` that `read` has returned.
    head_position: usize,
    /// The content after `head`.
    stream: Box<dyn Read + Send>,
    raw: Arc<RawState>,
    bytes: Option<u64>,
    damage: Option<String>,
}

/// The state of the file below the decompression.
#[derive(Default)]
struct RawState {
    position: AtomicU64,
    has_failed: AtomicBool,
}

struct RawFile<R> {
    inner: R,
    state: Arc<RawState>,
}

impl<R: Read> Read for RawFile<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = self.inner.read(buffer);
        match &result {
            Ok(n) => _ = self.state.position.fetch_add(*n as u64, Ordering::Relaxed),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.state.has_failed.store(true, Ordering::Relaxed),
        }
        result
    }
}

impl Input {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(|e| Error::io(path, e))?;
            return Self::from_reader(path, Box::new(Pipe::of_file(stdin.into())), None);
        }
        if fs::metadata(path).is_ok_and(|status| status.file_type().is_fifo()) {
            let pipe = Pipe::open(path).map_err(|e| Error::io(path, e))?;
            return Self::from_reader(path, Box::new(pipe), None);
        }
        let file = File::open(path).map_err(|e| cannot_open(path, e))?;
        let status = file.metadata().map_err(|e| Error::io(path, e))?;
        if status.is_dir() {
            return Err(is_directory(path));
        }
        let bytes = status.is_file().then_some(status.len());
        Self::from_reader(path, Box::new(file), bytes)
    }

    /// Reads a source of uncompressed bytes without waiting for its head, which then is empty. Errors do not end it.
    pub fn live(path: &Path, source: Box<dyn Read + Send>) -> Self {
        let raw = Arc::new(RawState::default());
        Self {
            path: path.to_owned(),
            compression: Compression::None,
            head: Vec::new(),
            head_position: 0,
            stream: Box::new(RawFile { inner: source, state: Arc::clone(&raw) }),
            raw,
            bytes: None,
            damage: None,
        }
    }

    /// Reads any source of bytes. `path` names it in messages; `bytes` is its length where known.
    pub fn from_reader(path: &Path, source: Box<dyn Read + Send>, bytes: Option<u64>) -> Result<Self> {
        let state = Arc::new(RawState::default());
        let mut raw = RawFile { inner: source, state: Arc::clone(&state) };
        let mut magic = Vec::with_capacity(4);
        raw.by_ref().take(4).read_to_end(&mut magic).map_err(|e| Error::io(path, e))?;
        let compression = Compression::recognise(&magic);
        let compressed = Cursor::new(magic).chain(raw);
        let stream: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(compressed),
            Compression::Gzip => Box::new(GzipReader::new(io::BufReader::with_capacity(128 * 1024, compressed))),
            Compression::Zstd => Box::new(zstd::Decoder::new(compressed).map_err(|e| Error::io(path, e))?),
        };
        let mut input = Self {
            path: path.to_owned(),
            compression,
            head: Vec::new(),
            head_position: 0,
            stream,
            raw: state,
            bytes,
            damage: None,
        };
        let mut head = Vec::new();
        input.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(|e| Error::io(path, e))?;
        input.head_position = if head.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        input.head = head;
        Ok(input)
    }

    /// Removes further layers of compression. A trace is not read from such a file, but its kind can be recognised.
    pub fn unpacked(mut self) -> Result<Self> {
        for _ in 1..MAX_LAYERS {
            if Compression::recognise(self.head()) == Compression::None {
                break;
            }
            let path = self.path.clone();
            self = Self::from_reader(&path, Box::new(self), None)?;
        }
        Ok(self)
    }

    /// The path, as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The compression of the file.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The first 64 KiB of the content, without a byte order mark.
    pub fn head(&self) -> &[u8] {
        self.head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.head)
    }

    /// The reason why the content ended early, if it did.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// The part of the file that has been read, from 0 to 1, if its length is known.
    pub fn progress(&self) -> Option<f64> {
        let all = self.bytes.filter(|&b| b > 0)?;
        Some((self.raw.position.load(Ordering::Relaxed) as f64 / all as f64).min(1.0))
    }

    /// The content as a seekable file: the file itself if it is not compressed, else an unnamed temporary copy.
    pub fn into_file(mut self) -> Result<File> {
        if self.compression == Compression::None && self.bytes.is_some() {
            return File::open(&self.path).map_err(|e| Error::io(&self.path, e));
        }
        let path = self.path.clone();
        let mut copy = || -> io::Result<File> {
            let mut file = tempfile::tempfile()?;
            io::copy(&mut self, &mut file)?;
            file.seek(SeekFrom::Start(0))?;
            Ok(file)
        };
        copy().map_err(|e| Error::io(path, e))
    }
}

/// blktrace is called with `NAME` or, by default, with a device, and blkparse takes the same name; the files have longer ones.
fn cannot_open(path: &Path, error: io::Error) -> Error {
    let prefix = path.file_name().map(|name| format!("{}.blktrace.", name.to_string_lossy()));
    match prefix {
        Some(prefix) if error.kind() == io::ErrorKind::NotFound && parts_in(directory_of(path), &prefix) => {
            Error::format(
                path,
                format!(
                    "there is no such file, but files of blktrace with this name: give {}.blktrace.*",
                    path.display()
                ),
            )
        }
        _ if error.kind() == io::ErrorKind::NotFound && is_address(path) => Error::format(
            path,
            "only report, sql, view, diagnose and compare read addresses, of s3://: copy it to a file, or mount its bucket",
        ),
        _ => Error::io(path, error),
    }
}

/// Whether it begins as `s3://` or `https://`.
fn is_address(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.split_once("://")
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()))
}

fn is_directory(path: &Path) -> Error {
    let parts = if parts_in(path, "") {
        format!("; it has files of blktrace: give {}/*.blktrace.*", path.display())
    } else {
        String::new()
    };
    Error::format(path, format!("a directory, not a trace{parts}"))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a directory has files of blktrace, `NAME.blktrace.CPU`, whose name begins like this.
fn parts_in(directory: &Path, prefix: &str) -> bool {
    let is_part = |name: &str| {
        let cpu = name.rsplit_once(".blktrace.").map(|(_, cpu)| cpu);
        name.starts_with(prefix) && cpu.is_some_and(|cpu| !cpu.is_empty() && cpu.bytes().all(|b| b.is_ascii_digit()))
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.take(MAX_ENTRIES).any(|entry| is_part(&entry.file_name().to_string_lossy()))
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The head comes first, even if damage was found while it was filled: a small file fits into the head.
        let head = &self.head[self.head_position..];
        if !head.is_empty() {
            let length = head.len().min(buffer.len());
            buffer[..length].copy_from_slice(&head[..length]);
            self.head_position += length;
            return Ok(length);
        }
        if self.damage.is_some() {
            return Ok(0);
        }
        match self.stream.read(buffer) {
            Err(e)
                if self.compression != Compression::None
                    && e.kind() != io::ErrorKind::Interrupted
                    && !self.raw.has_failed.load(Ordering::Relaxed) =>
            {
                let name = self.compression.name();
                self.damage = Some(if e.kind() == io::ErrorKind::UnexpectedEof {
                    format!("its {name} data ends in the middle: the file was cut short")
                } else {
                    format!("its {name} data is damaged ({e}): the rest cannot be read")
                });
                Ok(0)
            }
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> (Vec<u8>, Compression, Option<String>) {
        let mut input = Input::from_reader(Path::new("x"), Box::new(Cursor::new(bytes.to_vec())), None).unwrap();
        let mut content = Vec::new();
        input.read_to_end(&mut content).unwrap();
        (content, input.compression(), input.damage().map(String::from))
    }

    #[test]
    fn the_name_given_to_blktrace_leads_to_its_files() {
        let directory = tempfile::tempdir().unwrap();
        let problem = |path: &Path| Input::open(path).err().unwrap().to_string();
        let name = directory.path().join("trace");
        assert!(problem(&name).ends_with("No such file or directory"));
        assert!(problem(directory.path()).ends_with("a directory, not a trace"));
        fs::write(directory.path().join("trace.blktrace.1"), "").unwrap();
        assert!(problem(&name).ends_with(&format!("give {}.blktrace.*", name.display())), "{}", problem(&name));
        assert!(problem(directory.path()).contains("/*.blktrace.*"));
        assert!(problem(&directory.path().join("other")).ends_with("No such file or directory"));
    }

    #[test]
    fn an_object_of_a_store_is_refused_with_what_to_do() {
        let problem = Input::open(Path::new("s3://bucket/run.replay.parquet")).err().unwrap().to_string();
        assert!(problem.starts_with("s3://bucket/run.replay.parquet: only report, sql,"), "{problem}");
    }

    #[test]
    fn compression_is_recognised_by_content() {
        let content: Vec<u8> = (0..300_000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        assert_eq!(read(&content), (content.clone(), Compression::None, None));
        assert_eq!(read(&gzip(&content)), (content.clone(), Compression::Gzip, None));
        let packed = zstd::encode_all(&content[..], 1).unwrap();
        assert_eq!(read(&packed), (content, Compression::Zstd, None));
    }

    #[test]
    fn several_layers_of_compression_are_removed() {
        let mut packed = b"content".to_vec();
        for layers in 0..=MAX_LAYERS {
            let mut input = Input::from_reader(Path::new("x"), Box::new(Cursor::new(packed.clone())), None).unwrap();
            assert_eq!(input.compression(), if layers == 0 { Compression::None } else { Compression::Gzip });
            input = input.unpacked().unwrap();
            assert_eq!(input.head(), b"content", "{layers} layers");
            // Padding, as on a block device.
            packed = [gzip(&packed), vec![0; 100]].concat();
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let marked = "\u{feff}Timestamp,Response\n".as_bytes();
        for bytes in [marked.to_vec(), gzip(marked)] {
            assert_eq!(read(&bytes).0, b"Timestamp,Response\n");
        }
    }

    #[test]
    fn files_of_several_members_or_frames_are_read_to_the_end() {
        let two = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(read(&two).0, b"one two");
        let two = [zstd::encode_all(&b"one "[..], 1).unwrap(), zstd::encode_all(&b"two"[..], 1).unwrap()].concat();
        assert_eq!(read(&two), (b"one two".to_vec(), Compression::Zstd, None));
    }

    #[test]
    fn a_file_that_was_cut_short_is_read_up_to_the_cut() {
        let content: Vec<u8> = (0..100_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for packed in [gzip(&content), zstd::encode_all(&content[..], 1).unwrap()] {
            let (got, _, damage) = read(&packed[..packed.len() / 2]);
            assert!(damage.unwrap().contains("cut short"));
            assert!(!got.is_empty() && content.starts_with(&got));
        }
    }

    #[test]
    fn a_file_smaller_than_the_head_is_read_up_to_the_cut() {
        let content: Vec<u8> = (0..1350).flat_map(|i| format!("{i} ; {} ; 8 ; R\n", i * 7919).into_bytes()).collect();
        assert!(content.len() < HEAD_BYTES as usize);
        let half = content.len() / 2;
        let gzipped = gzip(&content);
        let frames =
            |n: usize| content.chunks(n).flat_map(|part| zstd::encode_all(part, 1).unwrap()).collect::<Vec<u8>>();
        for (packed, at_least) in [
            (gzipped[..gzipped.len() - 3].to_vec(), content.len()),
            (gzipped[..gzipped.len() * 9 / 10].to_vec(), half),
            ([gzip(&content[..half]), gzipped[..5].to_vec()].concat(), half),
            (frames(1000)[..frames(1000).len() * 9 / 10].to_vec(), half),
        ] {
            let (got, _, damage) = read(&packed);
            assert!(damage.unwrap().contains("cut short"));
            assert!(got.len() >= at_least && content.starts_with(&got), "{} of {}", got.len(), content.len());
        }
    }

    #[test]
    fn zeros_after_the_last_member_are_padding_as_for_gunzip() {
        for length in [100, 300_000] {
            let content: Vec<u8> = (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            for zeros in [1, 9, 512, 200_000] {
                let packed = [gzip(&content), gzip(b"x"), vec![0; zeros]].concat();
                let expected = [&content[..], b"x"].concat();
                assert!(read(&packed) == (expected, Compression::Gzip, None), "{zeros} zeros after {length} bytes");
            }
            let (got, _, damage) = read(&[gzip(&content), vec![0; 512], b"more".to_vec()].concat());
            assert!(got == content && damage.unwrap().contains("damaged"));
            for more in ["junk", "more than ten bytes"] {
                let (got, _, damage) = read(&[gzip(&content), more.into()].concat());
                assert!(
                    got == content && damage.unwrap().contains("its last member is followed by data that is not gzip"),
                    "{more}"
                );
            }
        }
    }

    #[test]
    fn damage_is_reported() {
        let mut packed = gzip(&vec![7; 100_000]);
        let middle = packed.len() / 2;
        packed[middle] ^= 0xff;
        assert!(read(&packed).2.is_some());
    }
}
