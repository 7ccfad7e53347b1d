//! Checks the compression of pages. gzip is refused, because the library would decompress a page of any size before it
//! compares the size with the header of the page.

use ::parquet::basic::Compression;
use ::parquet::file::metadata::ParquetMetaData;

/// An error message if one of the columns has a compression that is not supported.
pub fn unsupported(metadata: &ParquetMetaData, columns: &[Option<usize>]) -> Option<String> {
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
        "its pages are compressed with {name}, which iosonar cannot read: write it with zstd, snappy, lz4 or none"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, foreign};

    #[test]
    fn the_error_names_an_unsupported_compression() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.parquet");
        foreign(&path, &[1, 2, 3], None);
        let whole = std::fs::read(&path).unwrap();
        for (number, name) in [(2, "gzip"), (4, "brotli"), (3, "LZO")] {
            // In the footer, the path of the column is followed by its codec, field 4.
            let (before, after) = (b"at_ns\x15\x00", [b"at_ns\x15", &[2 * number][..]].concat());
            let mut bytes = whole.clone();
            let places: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(before)).collect();
            assert_eq!(places.len(), 2, "one in each row group");
            places.iter().for_each(|&at| bytes[at..at + after.len()].copy_from_slice(&after));
            std::fs::write(&path, bytes).unwrap();
            let error = error(&path);
            assert!(error.contains(&format!("compressed with {name}, which iosonar cannot read")), "{error}");
        }
    }
}
