//! What the tests of every format need.

use std::io::Cursor;
use std::path::Path;

use super::{FORMATS, Opened, Options, by_name, of_content};
use crate::input::Input;
use crate::metadata::{Kind, Metadata};
use crate::request::Request;

/// A file of that content.
pub fn input(content: &[u8]) -> Input {
    Input::from_reader(Path::new("x"), Box::new(Cursor::new(content.to_vec())), None).unwrap()
}

/// All rows of a load in that format.
pub fn load(format: &str, content: &[u8]) -> (Vec<Request>, Metadata) {
    load_with(format, content, &Options::default())
}

/// The same, as the options say.
pub fn load_with(format: &str, content: &[u8], options: &Options) -> (Vec<Request>, Metadata) {
    rows((by_name(format).unwrap().open)(input(content), options).unwrap())
}

/// All rows of an opened load.
pub fn rows(opened: Opened) -> (Vec<Request>, Metadata) {
    let Opened::Load(mut reader) = opened else { panic!("not a load") };
    let mut rows = Vec::new();
    while let Some(row) = reader.next().unwrap() {
        rows.push(row);
    }
    (rows, reader.metadata().clone())
}

/// The format that a file of that content is taken for.
pub fn recognised_as(content: &[u8]) -> &'static str {
    of_content(&input(content)).unwrap().name
}

/// What a writer makes of rows, and what it says that it lost.
pub fn written(format: &str, rows: &[Request], about: &Metadata) -> (Vec<u8>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let mut writer = crate::create_load_as(&path, by_name(format).unwrap(), about).unwrap();
    for row in rows {
        writer.write(row).unwrap();
    }
    let said = writer.finish(about).unwrap().said;
    (std::fs::read(path).unwrap(), said)
}

/// The metadata of a load of those devices.
pub fn about(devices: &[&str]) -> Metadata {
    let mut about = Metadata::new(Kind::Load, "x");
    let device = |name: &&str| crate::Device { name: (*name).to_owned(), sectors: None };
    about.devices = devices.iter().map(device).collect();
    about
}

#[test]
fn names_and_endings_are_unique() {
    let mut names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    names.sort_unstable();
    let mut unique = names.clone();
    unique.dedup();
    assert_eq!(names, unique);
    let endings: Vec<&str> = FORMATS.iter().flat_map(|format| format.endings).copied().collect();
    for (i, one) in endings.iter().enumerate() {
        for other in &endings[i + 1..] {
            assert!(!one.ends_with(other) && !other.ends_with(one), "{one} and {other}");
        }
    }
    for format in FORMATS {
        let written = format.create_load.is_some() || format.create_run.is_some();
        assert_eq!(written, !format.endings.is_empty(), "{}", format.name);
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Reads what there is, whatever it is.
    fn exhaust(opened: Opened) {
        match opened {
            Opened::Load(mut reader) => while let Ok(Some(_)) = reader.next() {},
            Opened::Run(mut reader) => while let Ok(Some(_)) = reader.next() {},
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), text in "[ -~\n\t]{0,300}") {
            for content in [bytes, text.into_bytes()] {
                for format in FORMATS {
                    if let Ok(opened) = (format.open)(input(&content), &Options::default()) {
                        exhaust(opened);
                    }
                }
                let _ = of_content(&input(&content));
            }
        }
    }
}
