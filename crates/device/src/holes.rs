//! Holes of a sparse file: ranges without storage.

use std::fs::File;
use std::io;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use serde::Serialize;

/// Number and size of holes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Holes {
    /// Number of holes.
    pub count: u64,
    /// Total bytes.
    pub bytes: u64,
}

/// Counts the holes in the first `bytes` of a file; none on a file system without holes.
pub fn find(file: &File, bytes: u64) -> io::Result<Holes> {
    let mut holes = Holes::default();
    let mut at = 0;
    while at < bytes {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.min(bytes),
            // No data from here on.
            Err(Errno::NXIO) => bytes,
            Err(error) => return Err(error.into()),
        };
        if data > at {
            holes.count += 1;
            holes.bytes += data - at;
        }
        if data >= bytes {
            break;
        }
        at = seek(file, SeekFrom::Hole(data))?;
    }
    Ok(holes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn holes_between_data_are_counted() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(1 << 20).unwrap();
        assert_eq!(find(&file, 1 << 20).unwrap(), Holes { count: 1, bytes: 1 << 20 });
        file.write_all_at(&[1; 65_536], 131_072).unwrap();
        assert_eq!(find(&file, 1 << 20).unwrap(), Holes { count: 2, bytes: (1 << 20) - 65_536 });
        assert_eq!(find(&file, 131_072).unwrap(), Holes { count: 1, bytes: 131_072 }, "only the first part");
    }
}
