//! Any bytes, whatever they are: the recognition of formats, and the reader of the one that was recognised.

#![no_main]

use std::io::Cursor;
use std::path::Path;

use iosonar_trace::Options;
use iosonar_trace::formats::{FORMATS, Opened};
use iosonar_trace::input::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: iosonar_fuzz::look_at_what_escapes(), |bytes: &[u8]| {
    let Ok(input) = Input::from_reader(Path::new("x"), Box::new(Cursor::new(bytes.to_vec())), None) else { return };
    let Some(format) = FORMATS.iter().find(|format| (format.recognise)(input.head())) else { return };
    match (format.open)(input, &Options::default()) {
        Ok(Opened::Load(mut rows)) => while let Ok(Some(_)) = rows.next() {},
        Ok(Opened::Run(mut rows)) => while let Ok(Some(_)) = rows.next() {},
        Err(_) => {}
    }
});
