//! Feeds any description to the parser of descriptions, and any bytes to its reader: TOML up to the first zero byte, or the
//! short spelling of the command line if there is none before the first newline; then the file.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use iosonar_trace::Options;
use iosonar_trace::formats::Opened;
use iosonar_trace::formats::described::{Description, FORMAT, Short, from_columns};
use iosonar_trace::input::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: iosonar_fuzz::ignore_guarded_panics(), |bytes: &[u8]| {
    let (text, content, is_toml) = match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (&bytes[..end], &bytes[end + 1..], true),
        None => {
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
            (&bytes[..end], bytes.get(end + 1..).unwrap_or_default(), false)
        }
    };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let description = if is_toml {
        Description::parse("x.toml", text)
    } else {
        from_columns(&Short { columns: text.to_owned(), ..Short::default() })
    };
    let Ok(description) = description else { return };
    let source = Box::new(Cursor::new(content.to_vec()));
    let Ok(input) = Input::from_reader(Path::new("x"), source, Some(content.len() as u64)) else { return };
    let options = Options { description: Some(description), ..Options::default() };
    let Ok(Opened::Load(mut rows)) = (FORMAT.open)(input, &options) else { return };
    let mut last = None;
    while let Ok(Some(row)) = rows.next() {
        assert!(last.is_none_or(|last| last <= row.at), "a time decreases");
        assert!(row.end().0 <= iosonar_trace::MAX_END_SECTOR, "a request ends beyond the limit");
        assert!(usize::from(row.device.0) < rows.metadata().devices.len(), "a device is not in the metadata");
        last = Some(row.at);
    }
});
