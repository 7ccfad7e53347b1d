//! Devices that appear late in a load.

use super::*;

/// A load whose devices appear with their first request, as with the readers of traces.
struct Late {
    requests: std::vec::IntoIter<Request>,
    names: Vec<&'static str>,
    metadata: Metadata,
}

impl Reader<Request> for Late {
    fn next(&mut self) -> Result<Option<Request>> {
        let next = self.requests.next();
        if let Some(request) = &next {
            for name in &self.names[self.metadata.devices.len()..=usize::from(request.device.0)] {
                self.metadata.devices.push(Device { name: (*name).into(), sectors: None });
            }
            self.metadata.count_request(request);
        }
        Ok(next)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// One request per second on each of these devices, at different sectors. The first device is known from the start.
fn late(names: &[&'static str]) -> Rows {
    let request = |n: u64| Request {
        device: DeviceId(n as u16),
        ..Request::new(Nanos(n as i64 * SECOND), Op::Read, Sector(n * 1000), Sectors(8))
    };
    let requests: Vec<Request> = (0..names.len() as u64).map(request).collect();
    let mut metadata = load(Vec::new()).metadata().clone();
    metadata.devices.truncate(1);
    metadata.devices[0].name = names[0].into();
    Box::new(Late { requests: requests.into_iter(), names: names.to_vec(), metadata })
}

/// The names of all devices at the end, and of each request's device when the request is returned.
fn named(mut rows: Rows) -> Result<(Vec<String>, Vec<String>)> {
    let mut of_requests = Vec::new();
    assert!(!rows.metadata().devices.is_empty(), "a load without devices");
    while let Some(request) = rows.next()? {
        of_requests.push(rows.metadata().devices[usize::from(request.device.0)].name.clone());
    }
    Ok((rows.metadata().devices.iter().map(|device| device.name.clone()).collect(), of_requests))
}

fn of(pipeline: &str, names: &[&'static str]) -> (Vec<String>, Vec<String>) {
    named(parse(pipeline).unwrap().apply(late(names)).unwrap()).unwrap()
}

fn refused(pipeline: &str, names: &[&'static str]) -> String {
    parse(pipeline).unwrap().apply(late(names)).and_then(named).unwrap_err().to_string()
}

#[test]
fn transforms_keep_late_devices() {
    let names = ["sda", "sdb", "sdc"];
    for pipeline in [
        "select",
        "clip from=0s",
        "sample share=1",
        "scale time=2",
        "ramped slope=1",
        "repeat times=2",
        "slip",
        "spread",
        "dense",
        "subst",
        "resize",
        "select | clip from=0s | spread | repeat times=2 | resize",
    ] {
        let (devices, of_requests) = of(pipeline, &names);
        assert_eq!(devices, names, "{pipeline}");
        assert_eq!(of_requests[..3], names, "{pipeline}");
    }
    assert_eq!(of("reverse", &names).1, ["sdc", "sdb", "sda"]);
    assert_eq!(of("cmd", &names), (vec!["sda".into()], vec!["sda".into(); 3]));
}

#[test]
fn late_devices_are_remapped() {
    let kept = |pipeline, names: &[&'static str]| of(pipeline, names).1;
    let names = ["sda", "sdb", "sdc"];
    // Devices that are not listed are kept.
    assert_eq!(kept("remap map=sda:disk", &names), ["disk", "sdb", "sdc"]);
    assert_eq!(kept("remap map=sdb:disk,2:disk", &names), ["sda", "disk", "disk"]);
    assert_eq!(of("remap map=sdc:sda others=drop", &names), (vec!["sda".into()], vec!["sda".into()]));
    assert_eq!(kept("remap map=sdb others=drop", &names), ["sdb"]);
    let error = refused("remap map=sdd:disk", &names);
    assert!(error.contains("no device `sdd`") && error.contains("sdc"), "{error}");
    // Names with commas: one known name shows the form.
    let names = ["8,0", "8,16", "7,1"];
    assert_eq!(kept("remap map=8,16:disk,7,1:8,16", &names), ["8,0", "disk", "8,16"]);
    assert_eq!(kept("remap map=0:disk,1", &names), ["disk", "8,16", "7,1"]);
    // Names that look like numbers.
    assert_eq!(kept("remap map=9:disk", &["7", "9"]), ["7", "disk"]);
    for (map, names) in [("0:disk", ["7", "0"]), ("0,0", ["0", "0,0"])] {
        let map = format!("remap map={map} others=drop");
        let error = refused(&map, &names);
        assert!(error.contains("appears late") || error.contains("twice"), "{map}: {error}");
    }
}

#[test]
fn late_devices_of_merged_loads_stay_separate() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(&directory, "other.load.parquet", &regular(3));
    let pipeline = format!("merge with={} offset=0.5s", file.display());
    let (devices, of_requests) = of(&pipeline, &["first", "second"]);
    // The file has two devices, sda and sdb.
    assert_eq!(devices, ["first", "sda", "sdb", "second"]);
    assert_eq!(of_requests, ["first", "sda", "second", "sda", "sda"]);
    let (devices, of_requests) = of(&format!("append with={} devices=add", file.display()), &["first", "second"]);
    assert_eq!(devices, ["first", "sda", "sdb", "second"]);
    assert_eq!(of_requests, ["first", "second", "sda", "sda", "sda"]);
    // Same number: the name in the first load, if the device has appeared there by then.
    let (devices, of_requests) = of(&format!("{pipeline} devices=same"), &["first", "second", "third"]);
    assert_eq!(devices, ["first", "sdb", "third"]);
    assert_eq!(of_requests, ["first", "first", "sdb", "first", "third", "first"]);
}

#[test]
fn late_devices_get_their_own_regions() {
    let names = ["sda", "sdb", "sdc"];
    let sectors = |pipeline: &str| {
        let (requests, metadata) = all(parse(pipeline).unwrap().apply(late(&names)).unwrap());
        (requests.iter().map(|request| request.sector.0).collect::<Vec<_>>(), metadata.devices)
    };
    assert_eq!(sectors("adjacent").0, [0, 8 + 1000, 8 + 1008 + 2000]);
    let (dense, devices) = sectors("dense");
    assert_eq!((dense, devices[2].sectors), (vec![0, 0, 0], Some(8)));
    let (anonymous, devices) = sectors("anonymise region=8s key=secret");
    assert_eq!(devices.len(), 3);
    assert!(anonymous[1] != 1000 && anonymous[2] != 2000, "{anonymous:?}");
}
