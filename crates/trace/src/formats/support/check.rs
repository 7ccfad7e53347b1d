//! Helpers for the tests of formats, and tests of all formats.

use std::io::Cursor;
use std::path::Path;

use crate::formats::format::{Opened, Options};
use crate::formats::{FORMATS, by_name, of_content};
use crate::io::input::Input;
use crate::model::metadata::{Kind, Metadata};
use crate::model::request::Request;

/// A file with this content.
pub fn input(content: &[u8]) -> Input {
    Input::from_reader(Path::new("x"), Box::new(Cursor::new(content.to_vec())), None).unwrap()
}

/// All rows of a load in a format.
pub fn load(format: &str, content: &[u8]) -> (Vec<Request>, Metadata) {
    load_with(format, content, &Options::default())
}

/// The same, with options.
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

/// The name of the format that is recognised for this content.
pub fn recognised_as(content: &[u8]) -> &'static str {
    of_content(&input(content)).unwrap().name
}

/// The file that a writer makes of rows, and its messages about losses. Without a file, the error.
pub fn written(format: &str, rows: &[Request], about: &Metadata) -> (Vec<u8>, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let mut writer = crate::create_load_as(&path, by_name(format).unwrap(), about).unwrap();
    for row in rows {
        writer.write(row).unwrap();
    }
    match writer.finish(about) {
        Ok(loss) => (std::fs::read(path).unwrap(), loss.warnings),
        Err(error) => {
            assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "a file was left behind");
            (Vec::new(), vec![error.to_string()])
        }
    }
}

/// The metadata of a load with these devices.
pub fn about(devices: &[&str]) -> Metadata {
    let mut about = Metadata::new(Kind::Load, "x");
    let device = |name: &&str| crate::Device { name: (*name).to_owned(), sectors: None };
    about.devices = devices.iter().map(device).collect();
    about
}

/// A row of each format whose rows are lines and whose files need no heading.
const ROWS: &[(&str, &str)] = &[
    ("alibaba", "419,W,8792731648,16384,1577808144360767"),
    ("blkparse", "  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]"),
    ("diskmon", "0\t0.000000\t0.00005245\t0\tRead\t4098088\t8"),
    ("etw", "DiskWrite, 500, System ( 4), 120, 0xfffffa8001, 0x1000, 0x2000, 100, 0, 0x060043, 90"),
    ("fio-latency", "6, 22323, 1, 4096, 0, 0"),
    ("fiu", "89966104304297 4892 syslogd 904265560 8 W 6 0 531e779f8bb2d0c4fe37eb2b2a2b1c3d"),
    ("ftrace-blk", "fio-305   [000] d..1.  3046.491227:   8,1    Q   R 6367 + 8 [fio]"),
    ("k5cloud", "1063,0.551706,W,20941264,8192"),
    ("msr", "128166372003061629,hm,1,Read,383496192,32768,413"),
    ("spc", "0,20941264,8192,W,0.551706"),
    ("systor17", "1455592511.102342,0.001204,W,4,8690491904,4096"),
    ("tencent", "1538323200,12910952,128,0,1063"),
    ("tracepoints", "fio 18719 [001]  3632.974325:   block:block_bio_queue: 7,0 R 31616 + 24 [fio]"),
];

#[test]
fn a_short_trace_with_one_unknown_line_is_recognised() {
    for (format, row) in ROWS {
        for (rows, unknown_at) in [(1, 0), (1, 1), (2, 1), (3, 0), (3, 3), (9, 4)] {
            let mut lines = vec![*row; rows];
            lines.insert(unknown_at, "1;2 unknown, line");
            let text = lines.join("\n") + "\n";
            assert_eq!(recognised_as(text.as_bytes()), *format, "{text}");
            let (requests, about) = load(format, text.as_bytes());
            // Other lines of a dump of ETW, and of a ring of the kernel, are other events.
            let bad = u64::from(!["etw", "tracepoints"].contains(format));
            assert_eq!((requests.len(), about.counts.bad_lines), (rows, bad), "{text}");
        }
    }
}

#[test]
fn names_and_extensions_are_unique() {
    let mut names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    names.sort_unstable();
    let mut unique = names.clone();
    unique.dedup();
    assert_eq!(names, unique);
    let extensions: Vec<&str> = FORMATS.iter().flat_map(|format| format.extensions).copied().collect();
    for (i, one) in extensions.iter().enumerate() {
        for other in &extensions[i + 1..] {
            assert!(!one.ends_with(other) && !other.ends_with(one), "{one} and {other}");
        }
    }
    for format in FORMATS {
        let is_written = format.create_load.is_some() || format.create_run.is_some();
        assert_eq!(is_written, !format.extensions.is_empty(), "{}", format.name);
    }
}

#[test]
fn a_format_that_compresses_itself_is_not_compressed_again() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.load.parquet.gz", "a.load.parquet.zst"] {
        let path = directory.path().join(name);
        let expected = format!("name it {}", directory.path().join("a.load.parquet").display());
        for refused in [
            crate::create_load(&path, &about(&[""])),
            crate::create_load_as(&path, by_name("parquet").unwrap(), &about(&[""])),
        ] {
            let said = refused.err().expect("it is refused").to_string();
            assert!(said.ends_with(&expected), "{said}");
        }
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    }
    assert!(crate::format_for(Path::new("a.load.gz")).is_ok());
    // blkparse only finds names with a CPU number.
    assert!(crate::format_for(Path::new("sda.blktrace")).err().unwrap().to_string().contains(" .blktrace.0 "));
}

#[test]
fn a_load_that_a_format_cannot_hold_leaves_no_file() {
    let of = |op| Request::new(crate::Nanos(0), op, crate::Sector(0), crate::Sectors(8));
    let [flush, zeroes] = [of(crate::Op::Flush), of(crate::Op::WriteZeroes)];
    for (format, row) in [("classic", flush), ("spc", flush), ("blktrace", zeroes), ("fio-iolog", zeroes)] {
        let (content, said) = written(format, &[row], &about(&["8,0"]));
        assert!(content.is_empty() && said[0].contains("because it does not have its operation"), "{format}: {said:?}");
        assert!(said[0].contains("; write NAME.load.parquet"), "{said:?}");
        // Other rows of the same load are written.
        assert!(!written(format, &[row, of(crate::Op::Read)], &about(&["8,0"])).0.is_empty(), "{format}");
    }
    for format in ["spc", "blktrace", "blkparse", "fio-iolog", "classic", "parquet"] {
        let (content, said) = written(format, &[], &about(&["8,0"]));
        let is_own = ["classic", "parquet"].contains(&format);
        assert_eq!(!content.is_empty(), is_own, "{format}: {said:?}");
        assert!(is_own || said[0].contains("the load has no requests"), "{said:?}");
    }
}

#[test]
fn devices_that_appear_late_keep_their_names() {
    let directory = tempfile::tempdir().unwrap();
    for format in ["blkparse", "blktrace", "fio-iolog"] {
        let path = directory.path().join(format);
        let mut writer = crate::create_load_as(&path, by_name(format).unwrap(), &about(&["8,0"])).unwrap();
        let at = |ms: i64, device| Request {
            device: crate::DeviceId(device),
            ..Request::new(crate::Nanos(ms * 1_000_000), crate::Op::Read, crate::Sector(8), crate::Sectors(8))
        };
        writer.write(&at(0, 0)).unwrap();
        writer.learn(&about(&["8,0", "8,16", "8,32"]));
        writer.write(&at(1, 2)).unwrap();
        writer.finish(&about(&["8,0", "8,16", "8,32"])).unwrap();
        let (rows, read) = load(format, &std::fs::read(path).unwrap());
        // The reader numbers devices as they appear.
        let names = rows.iter().map(|row| read.devices[usize::from(row.device.0)].name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["8,0", "8,32"], "{format}");
    }
}

#[test]
fn many_bad_lines_leave_room_for_warnings_about_the_whole_file() {
    let bad = |count: usize, from: usize| (from..from + count).map(|n| format!("bad {n}\n")).collect::<String>();
    let aligned: String = (0..99).map(|n| format!("1,R,4096,4096,157780800000{n:04}\n")).collect();
    let text = format!("{aligned}{}1,R,1,512,1577808000009999\n1,R,40", bad(120, 0));
    let (_, read) = load("alibaba", text.as_bytes());
    let of_lines = |read: &Metadata| read.warnings.iter().filter(|warning| warning.contains("left out:")).count();
    let has_warning =
        |read: &Metadata, text: &str| assert!(read.warnings.iter().any(|n| n.contains(text)), "{:?}", read.warnings);
    assert_eq!((read.counts.bad_lines, of_lines(&read)), (120, 100));
    has_warning(&read, "1 request was not aligned");
    has_warning(&read, "the file was cut short there");
    // Traces of events are read in batches: the first hundred bad lines of the file are listed, not of a batch.
    let event = |n: usize| format!("  8,0  0  {n}  0.{n:09}  1  Q  R {} + 8 [a]\n", n * 8);
    let events = |from: usize| (from..from + 20_000).map(event).collect::<String>();
    let remap = "  8,0  0  50000  0.500000000  1  A  R 8 + 8 <- (8,1) 0\n";
    let text = [events(0), bad(90, 0), events(20_000), bad(90, 90), remap.into()].concat();
    let (rows, read) = load("blkparse", text.as_bytes());
    assert_eq!((rows.len(), read.counts.bad_lines, of_lines(&read)), (40_000, 180, 100));
    has_warning(&read, "requests remapped from one device to another: 1");
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Reads all rows, up to the end or the first error.
    fn exhaust(opened: Opened) {
        match opened {
            Opened::Load(mut reader) => while let Ok(Some(_)) = reader.next() {},
            Opened::Run(mut reader) => while let Ok(Some(_)) = reader.next() {},
        }
    }

    /// Each format with latencies: a possible one, one that wrapped around, a negative one if the format can have it.
    #[test]
    fn requests_with_impossible_latencies_are_kept_without_them() {
        let vscsi: Vec<u8> = [30_u64, u64::MAX - 600]
            .iter()
            .flat_map(|response| {
                let mut record = vec![0x28, 0, 3, 2, 1, 0, 0, 0, 0, 16, 0, 0, 1, 0, 0, 0];
                [64, 7, *response].iter().for_each(|x: &u64| record.extend(x.to_le_bytes()));
                record
            })
            .collect();
        let texts: [(&str, &[u8], u64); 7] = [
            (
                "msr",
                b"128166372003061629,hm,1,Read,512,512,413\n128166372003061629,hm,1,Read,512,512,-413\n\
                128166372003061629,hm,1,Read,512,512,18446744073709551203\n",
                2,
            ),
            (
                "systor17",
                b"1455592511.1,0.001,W,4,512,512\n1455592511.1,-0.001,W,4,512,512\n\
                1455592511.1,18446744073.709,W,4,512,512\n",
                2,
            ),
            (
                "etw",
                b"DiskRead, 1000, a (1), 5, 0x1, 0x200, 0x200, 900, 1\n\
                DiskRead, 2000, a (1), 5, 0x1, 0x200, 0x200, -900, 1\n\
                DiskRead, 3000, a (1), 5, 0x1, 0x200, 0x200, 18446744073709550716, 1\n",
                2,
            ),
            ("diskmon", b"0 0.1 0.005 0 Read 8 8\n1 0.2 -0.005 0 Read 8 8\n2 0.3 18446744073.7 0 Read 8 8\n", 2),
            (
                "fio-latency",
                b"6, 22323, 0, 4096, 8192, 0\n7, -22323, 0, 4096, 8192, 0\n\
                8, 18446744073709529293, 0, 4096, 8192, 0\n",
                2,
            ),
            ("blkparse", b"8,0 1 1 1.000000000 9 D R 100 + 8 [a]\n8,0 1 2 1.000500000 0 C R 100 + 8 [0]\n", 0),
            ("vscsi", &vscsi, 1),
        ];
        for (format, text, impossible) in texts {
            let (rows, about) = load(format, text);
            assert_eq!((about.counts.impossible_times, about.counts.bad_lines), (impossible, 0), "{format}");
            let latencies = rows.iter().filter(|row| row.latency.is_some()).count() as u64;
            assert_eq!((rows.len() as u64, latencies), (1 + impossible, 1), "{format}: {rows:?}");
        }
    }

    proptest! {
        #[test]
        fn readers_do_not_panic_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600), text in "[ -~\n\t]{0,300}") {
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
