use iosonar_trace::Nanos;

use super::*;

const WORDS: Words = Words {
    plural: "requests",
    operation: |index| ["read", "write"].get(index).copied(),
    outcome: |index| ["ok", "dropped", "error"].get(index).copied(),
    has_waiting: true,
};

fn row(number: i64) -> Row {
    Row {
        operation: 0,
        outcome: 0,
        device: 0,
        scheduled: Nanos(number * 1000),
        issued: Some(Nanos(number * 1000 + 10)),
        latency: Some(Nanos(5000)),
        bytes: 4096,
        has_error: false,
        is_dropped: false,
        waiting: 3,
    }
}

#[test]
fn what_is_due_never_falls() {
    let live = Live::new(WORDS, true);
    (0..10).for_each(|number| live.add(&row(number)));
    let before = live.snapshot(|| 5);
    assert_eq!((before.demanded, before.submitted, before.completed, before.waiting), (18, 15, 10, Some(3)));
    // Those in flight have completed, and are not yet recorded.
    let now = live.snapshot(|| 0);
    assert_eq!((now.demanded, now.submitted), (18, 15));
    // A row that was issued earlier says nothing about what waits now.
    live.add(&Row { waiting: 100, ..row(0) });
    assert_eq!(live.snapshot(|| 0).waiting, Some(3));
}

#[test]
fn rows_are_counted_by_operation_outcome_and_device() {
    let live = Live::new(WORDS, true);
    live.name_devices(vec![DeviceName { source: "sda".into(), target: "/dev/sdb".into() }]);
    live.add(&row(0));
    live.add(&Row {
        operation: 1,
        outcome: 1,
        device: 7,
        issued: None,
        latency: None,
        bytes: 0,
        is_dropped: true,
        ..row(1)
    });
    live.add(&Row { outcome: 2, has_error: true, device: 70_000, ..row(2) });
    let found = live.snapshot(|| 0);
    let outcomes: Vec<_> =
        found.operations.iter().map(|operation| (operation.name, operation.outcomes.clone())).collect();
    assert_eq!(outcomes, [("read", vec![("ok", 1), ("error", 1)]), ("write", vec![("dropped", 1)])]);
    let devices: Vec<_> =
        found.devices.iter().map(|device| (device.name.source.as_str(), device.rows, device.errors)).collect();
    assert_eq!(devices, [("sda", 1, 0), ("7", 1, 0), ("255", 1, 1)]);
    assert_eq!((found.errors, found.dropped, found.bytes, found.submitted), (1, 1, 8192, 2));
    assert_eq!(found.operations[1].latency.count() + found.operations[1].delay.count(), 0);
}

#[test]
fn the_recent_part_is_the_difference_of_two_moments() {
    let live = Live::new(WORDS, true);
    (0..2000).for_each(|number| live.add(&row(number)));
    let before = live.snapshot(|| 0);
    (0..3000).for_each(|number| live.add(&Row { operation: 1, latency: Some(Nanos(90_000)), ..row(number) }));
    let now = live.snapshot(|| 0);
    let recent = Recent::between(&before, &now);
    assert_eq!(recent.latency.count(), 3000);
    let p99 = recent.latency_us.unwrap().p99.unwrap();
    assert!((p99 - 90.0).abs() < 0.1, "{p99}");
    assert!(recent.completed_per_s > 0.0 && recent.bytes_per_s > recent.completed_per_s);
    let nothing = Recent::between(&now, &now);
    assert!(nothing.latency_us.is_none() && nothing.latency.count() == 0);
}
