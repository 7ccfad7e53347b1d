//! Whether a target may be overwritten without --force: only if it holds nothing of value.
//!
//! | content | overwritten |
//! |---|---|
//! | a load, a run or a journal of iosonar, even compressed; or a device backed by such a file | never |
//! | a file that was a target before: it has the mark (an extended attribute) for its size | yes |
//! | a file of holes and zeros, as `fallocate` and `truncate` create it | yes |
//! | any other file | with --force |

use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::FileExt;

use iosonar_trace::input::Input;
use iosonar_trace::journal;
use rustix::fs::{Advice, SeekFrom, XattrFlags, fadvise, fgetxattr, fsetxattr, seek};
use rustix::io::Errno;

use super::node::Handle;
use super::zeroes::all_zero;

/// The mark's name. Its value is the file's size, because `cp` into the file keeps its attributes.
const MARK: &str = "user.iosonar.target";

fn value(bytes: u64) -> Vec<u8> {
    format!("bytes={bytes}").into_bytes()
}

/// Marks a file as a target, if its file system has extended attributes.
pub fn mark(file: &File) {
    if let Ok(meta) = file.metadata() {
        // Without a mark, the next run requires --force.
        let _ = fsetxattr(file, MARK, &value(meta.len()), XattrFlags::empty());
    }
}

/// Whether the file has the mark for its size.
pub fn is_marked(file: &File) -> io::Result<bool> {
    let mut found = [0; 64];
    let bytes = file.metadata()?.len();
    Ok(fgetxattr(file, MARK, &mut found[..]).is_ok_and(|length| found[..length] == value(bytes)))
}

/// Which file of iosonar's the file or device holds, if any.
pub fn own(handle: &Handle) -> Option<&'static str> {
    let mut file = handle.open(File::options().read(true)).ok()?;
    // `stat` has no size of a device.
    let bytes = file.seek(io::SeekFrom::End(0)).ok()?;
    file.rewind().ok()?;
    let input = Input::from_reader(&handle.own_path(), Box::new(file), Some(bytes)).and_then(Input::unpacked).ok()?;
    if input.head().starts_with(&journal::MAGIC) {
        return Some("the journal of a replay");
    }
    iosonar_trace::own(input).map(|kind| match kind {
        iosonar_trace::Kind::Load => "a load",
        iosonar_trace::Kind::Replay => "the result of a replay",
    })
}

/// Up to this much data is read in full; of more, the beginning, the end and [`PIECES`] pieces in between.
const ALL: u64 = 64 << 20;
const PIECE: u64 = 64 << 10;
const PIECES: u64 = 512;

/// Whether the file has only holes and zeros, as far as it is read.
pub fn is_blank(file: &File) -> io::Result<bool> {
    let areas = areas(file)?;
    let data: u64 = areas.iter().map(|(from, to)| to - from).sum();
    let _ = fadvise(file, 0, None, Advice::Random);
    let mut buffer = vec![0; PIECE as usize];
    let mut is_zero = |from: u64, to: u64| -> io::Result<bool> {
        let mut at = from;
        while at < to {
            let length = (to - at).min(PIECE) as usize;
            let read = file.read_at(&mut buffer[..length], at)?;
            if read == 0 {
                break;
            }
            if !all_zero(&buffer[..read]) {
                return Ok(false);
            }
            at += read as u64;
        }
        Ok(true)
    };
    // The beginning of each data area is always read.
    let step = if data <= ALL { PIECE } else { (data / PIECES).max(PIECE) };
    let mut blank = true;
    'all: for (from, to) in areas {
        let mut at = from;
        while at < to {
            if !is_zero(at, (at + PIECE).min(to))? {
                blank = false;
                break 'all;
            }
            at += step;
        }
        if !is_zero(to.saturating_sub(PIECE).max(from), to)? {
            blank = false;
            break;
        }
    }
    // The page cache must not serve the run's reads.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    Ok(blank)
}

/// The data areas between holes. File systems without holes have one area.
fn areas(file: &File) -> io::Result<Vec<(u64, u64)>> {
    let bytes = file.metadata()?.len();
    let (mut areas, mut at) = (Vec::new(), 0);
    while at < bytes {
        let from = match seek(file, SeekFrom::Data(at)) {
            Ok(from) => from,
            Err(Errno::NXIO) => break,
            Err(_) => return Ok(vec![(0, bytes)]),
        };
        let to = seek(file, SeekFrom::Hole(from))?.min(bytes);
        if to <= from {
            break;
        }
        areas.push((from, to));
        at = to;
    }
    Ok(areas)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(bytes: u64) -> File {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(bytes).unwrap();
        file
    }

    #[test]
    fn zeros_and_holes_are_blank_but_no_other_byte() {
        let file = sparse(100 << 30);
        assert!(is_blank(&file).unwrap());
        file.write_all_at(&[0; 10_000], 50 << 30).unwrap();
        assert!(is_blank(&file).unwrap(), "zeros that were written");
        for at in [0, 7777 << 20, (50 << 30) + 9999, (100 << 30) - 1] {
            file.write_all_at(&[1], at).unwrap();
            assert!(!is_blank(&file).unwrap(), "a byte at {at}");
            file.write_all_at(&[0], at).unwrap();
        }
        assert!(is_blank(&sparse(0)).unwrap());
    }

    #[test]
    fn large_files_are_read_at_the_beginning_the_end_and_in_between() {
        let file = sparse(0);
        let zeros = vec![0; 1 << 20];
        (0..96).for_each(|mib| file.write_all_at(&zeros, mib << 20).unwrap());
        assert!(is_blank(&file).unwrap());
        for at in [0, (96 << 20) - 1, 0x0040_0000 * 3] {
            file.write_all_at(&vec![1; 1 << 20][..((96 << 20) - at).min(1 << 20) as usize], at).unwrap();
            assert!(!is_blank(&file).unwrap(), "data at {at}");
            file.write_all_at(&zeros[..((96 << 20) - at).min(1 << 20) as usize], at).unwrap();
        }
    }

    #[test]
    fn a_mark_is_valid_for_one_size() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        assert!(!is_marked(&file).unwrap());
        mark(&file);
        assert!(is_marked(&file).unwrap());
        file.set_len(4096).unwrap();
        assert!(!is_marked(&file).unwrap());
    }
}
