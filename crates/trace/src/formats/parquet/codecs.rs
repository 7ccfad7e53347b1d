//! How the pages of a file are compressed, and whether this can be unpacked: that of gzip not, as the library would unpack a page
//! of any size and only then compare it with what the page says it has.

use ::parquet::basic::Compression;
use ::parquet::file::metadata::ParquetMetaData;

/// What is wrong if those columns of the file are compressed as no part of this program can unpack.
pub fn unknown(metadata: &ParquetMetaData, columns: &[Option<usize>]) -> Option<String> {
    let columns = metadata.row_groups().iter().flat_map(|group| {
        columns.iter().flatten().filter_map(|&place| group.columns().get(place)).map(|column| column.compression())
    });
    let name = columns.into_iter().find_map(|codec| match codec {
        Compression::GZIP(_) => Some("gzip"),
        Compression::BROTLI(_) => Some("brotli"),
        Compression::LZO => Some("LZO"),
        _ => None,
    })?;
    Some(format!(
        "its pages are compressed with {name}, which is not read here: write it with zstd, snappy, lz4 or none"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, foreign};

    #[test]
    fn a_compression_that_is_not_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        foreign(&path, &[1, 2, 3], None);
        let whole = std::fs::read(&path).unwrap();
        for (number, name) in [(2, "gzip"), (4, "brotli"), (3, "LZO")] {
            // In the table of contents the column's path is followed by its codec, field 4.
            let (before, after) = (b"at_ns\x15\x00", [b"at_ns\x15", &[2 * number][..]].concat());
            let mut bytes = whole.clone();
            let places: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(before)).collect();
            assert_eq!(places.len(), 2, "one in each row group");
            places.iter().for_each(|&at| bytes[at..at + after.len()].copy_from_slice(&after));
            std::fs::write(&path, bytes).unwrap();
            let said = error(&path);
            assert!(said.contains(&format!("compressed with {name}, which is not read here")), "{said}");
        }
    }
}
