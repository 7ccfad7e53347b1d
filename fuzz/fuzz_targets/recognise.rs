//! Feeds any bytes to the recognition of formats, and to the reader of the recognised format.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use iosonar_trace::Options;
use iosonar_trace::formats::{FORMATS, Opened};
use iosonar_trace::input::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: iosonar_fuzz::ignore_guarded_panics(), |bytes: &[u8]| {
    let Ok(input) = Input::from_reader(Path::new("x"), Box::new(Cursor::new(bytes.to_vec())), None) else { return };
    let Some(format) = FORMATS.iter().find(|format| (format.recognise)(input.head())) else { return };
    match (format.open)(input, &Options::default()) {
        Ok(Opened::Load(mut rows)) => while let Ok(Some(_)) = rows.next() {},
        Ok(Opened::Run(mut rows)) => while let Ok(Some(_)) = rows.next() {},
        Err(_) => {}
    }
});
