//! Checks pages before the library decodes them, because it trusts the counts at their beginning.
//!
//! The encodings are those of <https://parquet.apache.org/docs/file-format/data-pages/encodings/>.

use ::parquet::basic::{Encoding, Type as Physical};
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::schema::types::ColumnDescriptor;

/// The most texts in a page with delta encoding: the library allocates the lengths of all of them at once. Producers end
/// pages at about a megabyte.
const MAX_DELTA_TEXTS: u64 = 1 << 24;

/// The largest page in the encoding DELTA_BYTE_ARRAY, whose texts have common prefixes: a text may be as long as the page,
/// and the library creates a batch of texts at a time.
const MAX_DELTA_BYTE_ARRAY_PAGE: usize = 8 << 20;

/// The smallest value in a dictionary: a number, or the length of a text.
const MIN_DICTIONARY_VALUE: usize = 4;

/// Checks each page of a column.
pub struct CheckedPages {
    pages: Box<dyn PageReader>,
    is_nullable: bool,
    is_text: bool,
}

impl CheckedPages {
    /// For a column that is not nested.
    pub fn new(pages: Box<dyn PageReader>, column: &ColumnDescriptor) -> Self {
        let is_text = column.physical_type() == Physical::BYTE_ARRAY;
        Self { pages, is_nullable: column.max_def_level() > 0, is_text }
    }

    /// The offset of the values in a page, after the definition levels; `None` if unknown.
    fn values_at(&self, page: &Page) -> Option<usize> {
        match page {
            Page::DataPage { .. } if !self.is_nullable => Some(0),
            Page::DataPage { buf, def_level_encoding: Encoding::RLE, .. } => {
                let length = u32::from_le_bytes(buf.get(..4)?.try_into().ok()?);
                usize::try_from(length).ok()?.checked_add(4)
            }
            #[expect(deprecated, reason = "old files have it")]
            Page::DataPage { def_level_encoding: Encoding::BIT_PACKED, num_values, .. } => {
                Some(num_values.div_ceil(8) as usize)
            }
            Page::DataPageV2 { rep_levels_byte_len, def_levels_byte_len, .. } => {
                usize::try_from(rep_levels_byte_len.checked_add(*def_levels_byte_len)?).ok()
            }
            _ => None,
        }
    }

    /// Checks a page, and replaces it if it has only nulls. A page that cannot be parsed here is passed on, because the
    /// library cannot parse it either and reports that.
    fn check(&self, page: Page) -> ParquetResult<Page> {
        let wrong = || Err(ParquetError::General("the contents of a page contradict its header".to_owned()));
        let encoding = page.encoding();
        if let Page::DictionaryPage { buf, num_values, .. } = &page {
            let fits = *num_values as usize <= buf.len() / MIN_DICTIONARY_VALUE;
            return if fits { Ok(page) } else { wrong() };
        }
        let is_delta = matches!(
            encoding,
            Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY
        );
        let Some(at) = self.values_at(&page).filter(|&at| is_delta && at <= page.buffer().len()) else {
            return Ok(page);
        };
        if encoding == Encoding::DELTA_BYTE_ARRAY && page.buffer().len() > MAX_DELTA_BYTE_ARRAY_PAGE {
            return Err(ParquetError::General("a page of texts is larger than 8 MiB".to_owned()));
        }
        let limit = u64::from(page.num_values()).min(if self.is_text { MAX_DELTA_TEXTS } else { u64::MAX });
        let values = &page.buffer()[at..];
        let Some(first) = Deltas::read(values) else { return Ok(page) };
        // DELTA_BYTE_ARRAY has the lengths of the prefixes, then the lengths of the suffixes.
        let second = match encoding {
            Encoding::DELTA_BYTE_ARRAY => first.end(values).and_then(|end| Deltas::read(values.get(end..)?)),
            _ => None,
        };
        if first.count > limit || second.is_some_and(|second| second.count > limit) {
            return wrong();
        }
        // There are no values if all rows are null. If they are not, the library would count below zero.
        if first.count == 0 { Ok(without_values(page, at)) } else { Ok(page) }
    }
}

/// The page with only its definition levels, in plain encoding: a value that is missing is then an error.
fn without_values(mut page: Page, at: usize) -> Page {
    if let Page::DataPage { buf, encoding, .. } | Page::DataPageV2 { buf, encoding, .. } = &mut page {
        buf.truncate(at);
        *encoding = Encoding::PLAIN;
    }
    page
}

/// The header of numbers in the encoding DELTA_BINARY_PACKED.
#[derive(Clone, Copy)]
struct Deltas {
    /// Values per block.
    block: u64,
    /// Miniblocks per block.
    parts: u64,
    count: u64,
    /// The offset of the blocks.
    blocks_at: usize,
}

impl Deltas {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut at = 0;
        let [block, parts, count, _first] = [(); 4].map(|()| varint(bytes, &mut at));
        Some(Self { block: block?, parts: parts?, count: count?, blocks_at: _first.map(|_| at)? })
    }

    /// The offset of their end; `None` if the blocks are incomplete.
    fn end(self, bytes: &[u8]) -> Option<usize> {
        let part = self.block.checked_div(self.parts)?;
        let (mut left, mut at) = (self.count.saturating_sub(1), self.blocks_at);
        while left > 0 {
            varint(bytes, &mut at)?;
            let widths = bytes.get(at..at.checked_add(usize::try_from(self.parts).ok()?)?)?;
            at += widths.len();
            for &width in widths.iter().take(usize::try_from(left.div_ceil(part.max(1))).ok()?) {
                at = at.checked_add(usize::try_from(u64::from(width).checked_mul(part)?).ok()? / 8)?;
            }
            left = left.saturating_sub(self.block.max(1));
        }
        Some(at)
    }
}

/// A number in groups of seven bits (LEB128).
fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

impl Iterator for CheckedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        self.pages.get_next_page()?.map(|page| self.check(page)).transpose()
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use ::parquet::basic::Repetition;
    use ::parquet::schema::types::{ColumnPath, Type};

    use super::super::tests::{error, open_load};
    use super::*;
    use crate::model::request::Op;

    struct NoPages;

    impl Iterator for NoPages {
        type Item = ParquetResult<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            None
        }
    }

    impl PageReader for NoPages {
        fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
            Ok(None)
        }

        fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> ParquetResult<()> {
            Ok(())
        }
    }

    fn pages(of: Physical, is_nullable: bool) -> CheckedPages {
        let repetition = if is_nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let column = Type::primitive_type_builder("x", of).with_repetition(repetition).build().unwrap();
        let levels = i16::from(is_nullable);
        let column = ColumnDescriptor::new(Arc::new(column), levels, 0, ColumnPath::from("x"));
        CheckedPages::new(Box::new(NoPages), &column)
    }

    fn page(bytes: &[u8], num_values: u32, encoding: Encoding) -> Page {
        Page::DataPage {
            buf: bytes.to_vec().into(),
            num_values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    /// Blocks of 128 values in 4 miniblocks; then the number of values, and the first one.
    const NONE: [u8; 5] = [0x80, 1, 4, 0, 0];
    const FORTY: [u8; 5] = [0x80, 1, 4, 40, 0];
    /// The differences: the smallest is 1 (zigzag 2), and no miniblock has further bits.
    const BLOCK: [u8; 5] = [2, 0, 0, 0, 0];

    #[test]
    fn a_page_has_no_more_deltas_than_values() {
        let numbers = pages(Physical::INT64, false);
        let deltas = [FORTY, BLOCK].concat();
        assert!(numbers.check(page(&deltas, 40, Encoding::DELTA_BINARY_PACKED)).is_ok());
        assert!(numbers.check(page(&deltas, 39, Encoding::DELTA_BINARY_PACKED)).is_err());
        assert!(numbers.check(page(&deltas, 39, Encoding::PLAIN)).is_ok(), "no deltas");
        // The second list, after the first one, has a count too.
        let texts = pages(Physical::BYTE_ARRAY, false);
        let many = [0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0x7f, 0];
        let damaged = [&FORTY[..], &BLOCK, &many].concat();
        assert!(texts.check(page(&damaged, 40, Encoding::DELTA_BYTE_ARRAY)).is_err());
        let whole = [FORTY, BLOCK, FORTY, BLOCK].concat();
        assert!(texts.check(page(&whole, 40, Encoding::DELTA_BYTE_ARRAY)).is_ok());
    }

    #[test]
    fn a_page_of_nulls_becomes_an_empty_plain_page() {
        let numbers = pages(Physical::INT64, true);
        let levels = [2, 0, 0, 0, 80, 0];
        let nulls = page(&[&levels[..], &NONE].concat(), 40, Encoding::DELTA_BINARY_PACKED);
        let checked = numbers.check(nulls).unwrap();
        assert_eq!((checked.encoding(), &checked.buffer()[..]), (Encoding::PLAIN, &levels[..]));
    }

    #[test]
    fn a_dictionary_has_no_more_values_than_fit_into_its_bytes() {
        let dictionary = |num_values| Page::DictionaryPage {
            buf: vec![0; 80].into(),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let numbers = pages(Physical::INT64, false);
        assert!(numbers.check(dictionary(10)).is_ok());
        assert!(numbers.check(dictionary(u32::MAX)).is_err());
    }

    /// Tables of another producer, which are also the seeds of fuzzing.
    fn seed(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/parquet").join(name)
    }

    #[test]
    fn encodings_of_other_producers_are_read() {
        let read = |kind, version| open_load(&seed(&format!("{kind}-pages-{version}.parquet"))).0;
        let plain = read("plain", "1.0");
        assert_eq!((plain.len(), plain[1].op, plain[39].comm.as_str()), (40, Op::Read, "worker/3"));
        for kind in ["plain", "dictionary", "snappy", "delta-length", "delta-text", "split"] {
            for version in ["1.0", "2.0"] {
                assert_eq!(read(kind, version), plain, "{kind} {version}");
            }
        }
    }

    #[test]
    fn pages_whose_contents_contradict_their_header_are_damage() {
        let directory = tempfile::tempdir().unwrap();
        // Deltas of 40 numbers in blocks of 256 with 4 miniblocks, from 0 on, changed to claim no numbers or many.
        let (head, count) = (b"\x80\x02\x04\x28\x00", 3);
        for (claimed, name) in [(0, "none"), (0x7f, "many")] {
            let mut bytes = fs::read(seed("delta-length-pages-1.0.parquet")).unwrap();
            let at = bytes.windows(head.len()).position(|window| window == head).unwrap();
            bytes[at + count] = claimed;
            let path = directory.path().join(name);
            fs::write(&path, bytes).unwrap();
            let error = error(&path);
            assert!(error.contains("damaged Parquet"), "{error}");
        }
    }
}
