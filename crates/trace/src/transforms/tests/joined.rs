//! Transforms that join several loads.

use super::metadata::with;
use super::*;
use crate::model::metadata::RequestTime;

/// Writes a file of three requests that begins at this second, with changed metadata.
pub fn file_with(directory: &tempfile::TempDir, name: &str, from: i64, change: impl FnOnce(&mut Metadata)) -> PathBuf {
    let path = directory.path().join(name);
    let mut metadata = Metadata::new(Kind::Load, "test");
    change(&mut metadata);
    let mut writer = crate::create_load(&path, &metadata).unwrap();
    for request in regular(3) {
        writer.write(&Request { at: request.at + seconds(from as f64), queued: Some(Nanos(1)), ..request }).unwrap();
    }
    writer.finish(&metadata).unwrap();
    path
}

proptest! {
    #[test]
    fn append_concatenates_loads(one in requests(50, 1000), other in requests(50, 1000)) {
        let directory = tempfile::tempdir().unwrap();
        let files = ["b", "empty", "c"].map(|name| {
            let requests = if name == "empty" { &[][..] } else { &other };
            written(&directory, &format!("{name}.load.parquet"), requests).display().to_string()
        });
        let mut model: Vec<Request> = Vec::new();
        for load in [&one, &other, &other].into_iter().filter(|load| !load.is_empty()) {
            // The previous load ends with the model so far.
            let begin = model.last().map_or(load[0].at, |last| last.at + distance_at_end(&model, &one, &other));
            model.extend(load.iter().map(|r| Request { at: Nanos(r.at.0 - load[0].at.0 + begin.0), ..*r }));
        }
        prop_assert_eq!(edited(&format!("append with={}", files.join(",")), &one), model);
    }
}

/// The distance from the end of `so_far` (the first load, or the first and second) to the next load.
fn distance_at_end(so_far: &[Request], one: &[Request], other: &[Request]) -> Nanos {
    let load = if so_far.len() == one.len() { one } else { other };
    match load[load.len() - 1].at.0 - load[0].at.0 {
        0 => Nanos(SECOND),
        span => Nanos((span / (load.len() as i64 - 1)).max(1)),
    }
}

#[test]
fn joined_loads_keep_all_preambles() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        file_with(&directory, name, 0, |metadata| metadata.source.preamble = text.into()).display().to_string()
    };
    let (other, same) = (file("b.load.parquet", "Licence of B\n"), file("c.load.parquet", "Free for all"));
    let none = file("d.load.parquet", "");
    for transform in ["merge", "append", "adjacent"] {
        let pipeline = format!("{transform} with={other},{same},{none}");
        let (_, metadata) = all(parse(&pipeline).unwrap().apply(load(regular(3))).unwrap());
        let lines: Vec<&str> = metadata.source.preamble.lines().collect();
        assert_eq!(lines[..3], ["Free for all", "Of load 2:", "Licence of B"]);
        assert!(lines[3].starts_with("Edited by iosonar") && lines.len() == 4, "{lines:?}");
    }
}

#[test]
fn metadata_that_differs_between_joined_loads_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let late = file_with(&directory, "b.load.parquet", 0, |metadata| {
        metadata.epoch_unix_ns = Some(10 * SECOND);
        metadata.request_time = RequestTime::Issued;
    });
    let joined = |transform: &str, offset: &str| {
        let requests = regular(3).into_iter().map(|request| Request { queued: Some(Nanos(1)), ..request }).collect();
        let rows = with(|metadata| metadata.epoch_unix_ns = Some(7 * SECOND), requests);
        let pipeline = format!("{transform} with={} {offset}", late.display());
        let (requests, metadata) = all(parse(&pipeline).unwrap().apply(rows).unwrap());
        let queued = requests.iter().filter(|request| request.queued.is_some()).count();
        (metadata.epoch_unix_ns, queued, metadata.warnings)
    };
    let (epoch, queued, warnings) = joined("merge", "");
    assert_eq!((epoch, queued, warnings.len()), (None, 3, 2), "{warnings:?}");
    assert!(warnings[0].contains("queueing times") && warnings[1].contains("later than it runs here"), "{warnings:?}");
    // Shifted to its original distance.
    assert_eq!(joined("merge", "offset=3s").0, Some(7 * SECOND));
    // The epoch of the first load.
    assert_eq!(joined("append", "").0, Some(7 * SECOND));
}
