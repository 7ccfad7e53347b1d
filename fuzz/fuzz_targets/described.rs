//! Feeds any description to the parser of descriptions, and any bytes to its reader: TOML up to the first zero byte, or the
//! short spelling of the command line if there is none before the first newline; then the file.

#![no_main]

use iosonar_trace::Options;
use iosonar_trace::formats::Opened;
use iosonar_trace::formats::described::{ColumnOptions, Description, FORMAT, from_columns};
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
        from_columns(&ColumnOptions { columns: text.to_owned(), ..ColumnOptions::default() })
    };
    let Ok(description) = description else { return };
    let Ok(input) = iosonar_fuzz::input(content) else { return };
    let options = Options { description: Some(description), ..Options::default() };
    let Ok(Opened::Load(mut rows)) = (FORMAT.open)(input, &options) else { return };
    iosonar_fuzz::read_load(rows.as_mut());
});
