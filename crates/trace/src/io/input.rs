//! The bytes of a file that is read: plain, gzip or zstd by their first bytes, from a file or from standard input.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::io::gzip::Unpacked;
use crate::io::pipe::Pipe;

/// How much of the beginning is shown to the formats, so that they can recognise themselves.
const HEAD_BYTES: u64 = 64 * 1024;

/// How often a file may have been packed, so that [`Input::unpacked`] finds what it is.
const PACKED_AT_MOST: usize = 8;

/// What may stand in front of text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// How the bytes of a file are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, of one or several members.
    Gzip,
    /// Zstandard, of one or several frames.
    Zstd,
}

impl Compression {
    /// Its name for people.
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

/// A file's content after decompression. Its `read` ends early where the packed data does; [`Input::damage`] then says
/// why, so that what is readable is read and yet never taken for the whole.
pub struct Input {
    path: PathBuf,
    compression: Compression,
    head: Vec<u8>,
    /// How much of the head has been read again, as the beginning of the content.
    replayed: usize,
    /// What follows the head.
    stream: Box<dyn Read + Send>,
    gauge: Arc<Gauge>,
    bytes: Option<u64>,
    damage: Option<String>,
}

/// What passed through the lowest layer, seen from above the decompression.
#[derive(Default)]
struct Gauge {
    position: AtomicU64,
    failed: AtomicBool,
}

struct Gauged<R> {
    inner: R,
    gauge: Arc<Gauge>,
}

impl<R: Read> Read for Gauged<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let result = self.inner.read(buffer);
        match &result {
            Ok(n) => _ = self.gauge.position.fetch_add(*n as u64, Ordering::Relaxed),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.gauge.failed.store(true, Ordering::Relaxed),
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
        let file = File::open(path).map_err(|e| Error::io(path, e))?;
        let status = file.metadata().map_err(|e| Error::io(path, e))?;
        if status.is_dir() {
            return Err(Error::format(path, "a folder, not a trace"));
        }
        let bytes = status.is_file().then_some(status.len());
        Self::from_reader(path, Box::new(file), bytes)
    }

    /// The same on any source of bytes; `path` is what it is called, `bytes` its length where known.
    pub fn from_reader(path: &Path, raw: Box<dyn Read + Send>, bytes: Option<u64>) -> Result<Self> {
        let gauge = Arc::new(Gauge::default());
        let mut raw = Gauged { inner: raw, gauge: Arc::clone(&gauge) };
        let mut magic = Vec::with_capacity(4);
        raw.by_ref().take(4).read_to_end(&mut magic).map_err(|e| Error::io(path, e))?;
        let compression = Compression::recognise(&magic);
        let packed = Cursor::new(magic).chain(raw);
        let stream: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(packed),
            Compression::Gzip => Box::new(Unpacked::new(io::BufReader::with_capacity(128 * 1024, packed))),
            Compression::Zstd => Box::new(zstd::Decoder::new(packed).map_err(|e| Error::io(path, e))?),
        };
        let mut input = Self {
            path: path.to_owned(),
            compression,
            head: Vec::new(),
            replayed: 0,
            stream,
            gauge,
            bytes,
            damage: None,
        };
        let mut head = Vec::new();
        input.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(|e| Error::io(path, e))?;
        // Windows marks text in UTF-8 with it.
        input.replayed = if head.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        input.head = head;
        Ok(input)
    }

    /// What was packed again and again. As a trace such a file is not read; what it holds can be found out all the same.
    pub fn unpacked(mut self) -> Result<Self> {
        for _ in 1..PACKED_AT_MOST {
            if Compression::recognise(self.head()) == Compression::None {
                break;
            }
            let path = self.path.clone();
            self = Self::from_reader(&path, Box::new(self), None)?;
        }
        Ok(self)
    }

    /// What it is called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it is packed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The first bytes of the content: 64 KiB, or all of it.
    pub fn head(&self) -> &[u8] {
        self.head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.head)
    }

    /// Why the content ended before its end, if it did.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// How much of the file has been read, from 0 to 1, where its length is known.
    pub fn progress(&self) -> Option<f64> {
        let all = self.bytes.filter(|&b| b > 0)?;
        Some((self.gauge.position.load(Ordering::Relaxed) as f64 / all as f64).min(1.0))
    }

    /// The content as a file to seek in: the file itself, or a nameless copy in the folder for temporary files.
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

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // First of all what was readable, even if the damage has been met already: a small file is all head.
        let head = &self.head[self.replayed..];
        if !head.is_empty() {
            let length = head.len().min(buffer.len());
            buffer[..length].copy_from_slice(&head[..length]);
            self.replayed += length;
            return Ok(length);
        }
        if self.damage.is_some() {
            return Ok(0);
        }
        match self.stream.read(buffer) {
            Err(e)
                if self.compression != Compression::None
                    && e.kind() != io::ErrorKind::Interrupted
                    && !self.gauge.failed.load(Ordering::Relaxed) =>
            {
                let name = self.compression.name();
                self.damage = Some(if e.kind() == io::ErrorKind::UnexpectedEof {
                    format!("its {name} data ends in the middle: the file was cut short")
                } else {
                    format!("its {name} data is damaged ({e}): nothing behind that place can be read")
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
    fn compression_is_told_by_content() {
        let content: Vec<u8> = (0..300_000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        assert_eq!(read(&content), (content.clone(), Compression::None, None));
        assert_eq!(read(&gzip(&content)), (content.clone(), Compression::Gzip, None));
        let packed = zstd::encode_all(&content[..], 1).unwrap();
        assert_eq!(read(&packed), (content, Compression::Zstd, None));
    }

    #[test]
    fn what_was_packed_again_and_again_is_unpacked() {
        let mut packed = b"content".to_vec();
        for times in 0..=PACKED_AT_MOST {
            let mut input = Input::from_reader(Path::new("x"), Box::new(Cursor::new(packed.clone())), None).unwrap();
            assert_eq!(input.compression(), if times == 0 { Compression::None } else { Compression::Gzip });
            input = input.unpacked().unwrap();
            assert_eq!(input.head(), b"content", "packed {times} times");
            // Zeros behind it, as storage has them behind a file.
            packed = [gzip(&packed), vec![0; 100]].concat();
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_content() {
        let marked = "\u{feff}Timestamp,Response\n".as_bytes();
        for bytes in [marked.to_vec(), gzip(marked)] {
            assert_eq!(read(&bytes).0, b"Timestamp,Response\n");
        }
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        let two = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(read(&two).0, b"one two");
        let two = [zstd::encode_all(&b"one "[..], 1).unwrap(), zstd::encode_all(&b"two"[..], 1).unwrap()].concat();
        assert_eq!(read(&two), (b"one two".to_vec(), Compression::Zstd, None));
    }

    #[test]
    fn cut_files_give_what_is_readable() {
        let content: Vec<u8> = (0..100_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for packed in [gzip(&content), zstd::encode_all(&content[..], 1).unwrap()] {
            let (got, _, damage) = read(&packed[..packed.len() / 2]);
            assert!(damage.unwrap().contains("cut short"));
            assert!(!got.is_empty() && content.starts_with(&got));
        }
    }

    #[test]
    fn small_cut_files_give_what_is_readable_too() {
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
    fn zeros_behind_the_last_member_are_padding_as_for_gunzip() {
        for length in [100, 300_000] {
            let content: Vec<u8> = (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            for zeros in [1, 9, 512, 200_000] {
                let packed = [gzip(&content), gzip(b"x"), vec![0; zeros]].concat();
                let expected = [&content[..], b"x"].concat();
                assert!(read(&packed) == (expected, Compression::Gzip, None), "{zeros} behind {length}");
            }
            let (got, _, damage) = read(&[gzip(&content), vec![0; 512], b"more".to_vec()].concat());
            assert!(got == content && damage.unwrap().contains("damaged"));
            for more in ["junk", "more than ten bytes"] {
                let (got, _, damage) = read(&[gzip(&content), more.into()].concat());
                assert!(
                    got == content && damage.unwrap().contains("what follows its last member is no gzip"),
                    "{more}"
                );
            }
        }
    }

    #[test]
    fn damaged_files_say_so() {
        let mut packed = gzip(&vec![7; 100_000]);
        let middle = packed.len() / 2;
        packed[middle] ^= 0xff;
        assert!(read(&packed).2.is_some());
    }
}
