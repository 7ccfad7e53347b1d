//! Requests without a position, joined devices, and loads that return nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// A load with one request on each of these devices.
fn on_devices(devices: &[(&str, Option<u64>)]) -> Rows {
    let mut metadata = Metadata::new(Kind::Load, "made");
    let device = |&(name, sectors): &(&str, _)| Device { name: name.into(), sectors };
    metadata.devices = devices.iter().map(device).collect();
    metadata.counts.bad_lines = 7;
    let request = |n| Request { device: DeviceId(n), ..Request::new(Nanos(n.into()), Op::Read, Sector(0), Sectors(8)) };
    let requests: Vec<_> = (0..devices.len() as u16).map(request).collect();
    Box::new(Given { requests: requests.into_iter(), metadata })
}

#[test]
fn remap_joins_devices_by_new_names_only() {
    let remapped = |map: &str| {
        let rows = on_devices(&[("sda", Some(1)), ("sda", Some(2)), ("sdb", Some(3))]);
        let (rows, metadata) = all(parse(&format!("remap map={map}")).unwrap().apply(rows).unwrap());
        let names: Vec<String> = metadata.devices.iter().map(|device| device.name.clone()).collect();
        (names.join(" "), rows.iter().map(|row| row.device.0).collect::<Vec<_>>())
    };
    assert_eq!(remapped("sdb:new"), ("sda sda new".into(), vec![0, 1, 2]));
    assert_eq!(remapped("sda others=drop"), ("sda sda".into(), vec![0, 1]));
    assert_eq!(remapped("sda:one"), ("one sdb".into(), vec![0, 0, 1]));
    assert_eq!(remapped("0:one,1:two"), ("one two sdb".into(), vec![0, 1, 2]));
    assert_eq!(remapped("sda:sdb"), ("sdb".into(), vec![0, 0, 0]));
    assert_eq!(remapped("sdb:sda"), ("sda".into(), vec![0, 0, 0]));
}

#[test]
fn cmd_drops_the_device_size() {
    let rows = on_devices(&[("sda", Some(8)), ("sdb", Some(1 << 30))]);
    let (_, metadata) = all(parse("cmd").unwrap().apply(rows).unwrap());
    assert_eq!(metadata.devices, [Device { name: "sda".into(), sectors: None }]);
}

#[test]
fn merge_gives_equated_devices_the_larger_size() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.load.parquet");
    let mut other = on_devices(&[("b", Some(900)), ("c", None)]);
    let mut writer = crate::create_load(&path, other.metadata()).unwrap();
    while let Some(row) = other.next().unwrap() {
        writer.write(&row).unwrap();
    }
    writer.finish(other.metadata()).unwrap();
    let rows = on_devices(&[("a", Some(500)), ("a2", Some(500))]);
    let merge = parse(&format!("merge devices=same with={}", path.display())).unwrap();
    let sizes: Vec<_> = merge.apply(rows).unwrap().metadata().devices.iter().map(|device| device.sectors).collect();
    assert_eq!(sizes, [Some(900), None]);
}

#[test]
fn requests_without_position_are_not_moved() {
    let read = |at: i64, sector| Request::new(Nanos(at * SECOND), Op::Read, Sector(sector), Sectors(8));
    let flush = |at: i64| Request::new(Nanos(at * SECOND), Op::Flush, Sector(0), Sectors(0));
    let requests = [read(0, 800), flush(1), read(2, 1600), flush(3)];
    for pipeline in [
        "slip every=1 increase=1s",
        "spread factor=3 offset=100s",
        "repeat times=3 offset=1000s",
        "dense",
        "adjacent",
        "anonymise region=8s key=a",
        "resize factor=3",
    ] {
        let edited = edited(pipeline, &requests);
        assert!(edited.iter().any(|row| row.op == Op::Flush), "{pipeline}");
        let flushes = edited.iter().filter(|row| row.op == Op::Flush);
        flushes.for_each(|row| assert_eq!((row.sector, row.sectors), (Sector(0), Sectors(0)), "{pipeline}"));
    }
    let slipped = edited("slip every=2 increase=1s", &requests);
    assert_eq!(slipped[2].sector, Sector(1601), "a flush counts as a request");
}

#[test]
fn iterations_of_simultaneous_requests_are_a_second_apart() {
    let requests = vec![Request::new(Nanos(5), Op::Read, Sector(0), Sectors(8)); 3];
    let times: Vec<i64> = edited("repeat times=2", &requests).iter().map(|row| row.at.0).collect();
    assert_eq!(times, [5, 5, 5, SECOND + 5, SECOND + 5, SECOND + 5]);
}

#[test]
fn a_load_that_returns_nothing_can_be_stopped() {
    let calls = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&calls);
    let is_over: IsOver = Arc::new(move || count.fetch_add(1, Ordering::Relaxed) > 1000);
    let mut rows = parse("repeat | clip from=1T").unwrap().apply_until(load(regular(10)), &is_over).unwrap();
    assert!(rows.next().unwrap().is_none());
    assert!(calls.load(Ordering::Relaxed) > 1000);
}
