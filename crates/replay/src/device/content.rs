//! Whether a target may be overwritten without a question: only if nothing would be missed.
//!
//! | what | goes |
//! |---|---|
//! | a file or a device that holds a load, a run or a journal of iosonar, also compressed, or stands on such a file | never |
//! | a file that was a target before: it carries a mark (an extended attribute), and still has its size | yes |
//! | a file of nothing but holes and zeros, as `fallocate` and `truncate` make it | yes |
//! | any other file | by force only |

use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::FileExt;

use iosonar_trace::input::Input;
use rustix::fs::{Advice, SeekFrom, XattrFlags, fadvise, fgetxattr, fsetxattr, seek};
use rustix::io::Errno;

use super::node::Handle;
use super::zeroes::all_zero;
use crate::result::journal;

/// The mark's name. Its value is the file's size, so that a file that was put in its place by `cp`, which keeps attributes, is
/// not taken for it.
const MARK: &str = "user.iosonar.target";

fn value(bytes: u64) -> Vec<u8> {
    format!("bytes={bytes}").into_bytes()
}

/// Marks a file as a target, where its file system has extended attributes.
pub fn mark(file: &File) {
    if let Ok(meta) = file.metadata() {
        // Where it can't be marked, the next run asks for --force.
        let _ = fsetxattr(file, MARK, &value(meta.len()), XattrFlags::empty());
    }
}

/// Whether it was a target before, and nothing else since.
pub fn is_marked(file: &File) -> io::Result<bool> {
    let mut found = [0; 64];
    let bytes = file.metadata()?.len();
    Ok(fgetxattr(file, MARK, &mut found[..]).is_ok_and(|length| found[..length] == value(bytes)))
}

/// What of iosonar's own stands in a file or on a device, if anything does.
pub fn own(handle: &Handle) -> Option<&'static str> {
    let mut file = handle.open(File::options().read(true)).ok()?;
    // What `stat` says of a device has no length.
    let bytes = file.seek(io::SeekFrom::End(0)).ok()?;
    file.rewind().ok()?;
    let input = Input::from_reader(&handle.own_path(), Box::new(file), Some(bytes)).and_then(Input::unpacked).ok()?;
    if input.head().starts_with(journal::NAME) {
        return Some("the journal of a replay");
    }
    iosonar_trace::own(input).map(|kind| match kind {
        iosonar_trace::Kind::Load => "a load",
        iosonar_trace::Kind::Replay => "the result of a replay",
    })
}

/// Of a file with no more data than that, all of it is read; of a larger one its beginning, its end and pieces all over it.
const ALL: u64 = 64 << 20;
const PIECE: u64 = 64 << 10;
const PIECES: u64 = 512;

/// Whether it is nothing but holes and zeros, as far as was read.
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
    // Even of a large file each area's beginning is read: whatever was put into a sparse file begins somewhere.
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
    // What was read here must not answer the run's own reads.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    Ok(blank)
}

/// Where it has data: what is no hole. File systems without holes have one area.
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
    fn zeros_and_holes_are_blank_and_a_single_byte_is_not() {
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
    fn of_much_data_beginning_end_and_pieces_are_read() {
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
    fn a_mark_holds_as_long_as_the_size_does() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        assert!(!is_marked(&file).unwrap());
        mark(&file);
        assert!(is_marked(&file).unwrap());
        file.set_len(4096).unwrap();
        assert!(!is_marked(&file).unwrap());
    }
}
