//! A depth for each target: a full one holds no others.

use super::*;

/// Requests alternate between target 0 with a latency of 1 s and target 1 with a latency of 0.1 ms.
fn load_of_a_slow_and_a_fast_target(requests: u64) -> (Vec<PreparedIo>, Responder) {
    let on = |i: u64| PreparedIo { target: (i % 2) as u16, ..write(i, i as i64 * MS, i * 8, 8) };
    let responder = Box::new(|io: &Io<'_>| (Nanos(if io.target == 0 { 1000 * MS } else { MS / 10 }), io.length as i64));
    ((0..requests).map(on).collect(), responder)
}

#[test]
fn with_a_depth_per_target_a_full_target_does_not_hold_others() {
    let (load, responder) = load_of_a_slow_and_a_fast_target(40);
    let (rows, counters) = Bench::with_depth_per_target(2, Policy::Partial, 1).run(load, responder);
    let rows = by_request(rows);
    for row in rows.iter().filter(|row| row.request % 2 == 1) {
        assert!(row.delay().unwrap() < Nanos(MS / 10) && row.delay_reason == DelayReason::None, "{row:?}");
    }
    for row in rows.iter().filter(|row| row.request % 2 == 0).skip(1) {
        assert!(row.delay().unwrap() > Nanos(900 * MS) && row.delay_reason == DelayReason::Depth, "{row:?}");
    }
    assert_eq!(counters.max_in_flight, 2, "one on each");

    let (load, responder) = load_of_a_slow_and_a_fast_target(40);
    let (rows, counters) = Bench::new(Policy::Partial, 1).run(load, responder);
    let held = rows.iter().filter(|row| row.delay_reason == DelayReason::Depth).count();
    assert!(held >= 38, "a shared depth also holds requests of the fast target: {held}");
    assert_eq!(counters.max_in_flight, 1);
}

#[test]
fn as_fast_as_possible_serves_all_targets_in_turn() {
    let load: Vec<_> = (0..400).map(|i| PreparedIo { target: u16::from(i >= 200), ..write(i, 0, i * 8, 8) }).collect();
    let mut bench = Bench::with_depth_per_target(2, Policy::Partial, 8);
    bench.pace = Pace::AsFastAsPossible;
    // So fast that slots of the first target are free in every turn.
    let (rows, _) = bench.run(load, each_takes(1));
    let first_of_second = rows.iter().position(|row| row.request >= 200).unwrap();
    assert!(first_of_second < 50, "{first_of_second} requests were issued before it");
}

#[test]
fn pushed_back_requests_of_one_target_take_no_slots_of_another() {
    let mut bench = Bench::with_depth_per_target(2, Policy::Partial, 8);
    bench.pushed_back = 2;
    // All requests of target 0 overlap and soon use up its slots for pushed-back requests.
    let load = (0..20).map(|i| PreparedIo { target: (i % 2) as u16, ..write(i, i as i64 * MS, (i % 2) * i * 8, 8) });
    let responder = Box::new(|io: &Io<'_>| (Nanos(if io.target == 0 { 100 * MS } else { MS / 10 }), io.length as i64));
    let (rows, counters) = bench.run(load.collect(), responder);
    assert_eq!((rows.len(), counters.max_pushed_back), (20, 2));
    for row in rows.iter().filter(|row| row.request % 2 == 1) {
        assert_eq!(row.delay_reason, DelayReason::None, "{row:?}");
    }
}

#[test]
fn a_full_dispatch_queue_holds_the_input() {
    let (mut producer, input) = RingBuffer::new(4);
    let prepare = thread::spawn(move || {
        // Far more requests for the first target than its queue holds, then one for the second.
        for i in 0..64 {
            let mut next = PreparedIo { target: u16::from(i == 63), ..write(i, 0, i * 8, 8) };
            while let Err(rtrb::PushError::Full(back)) = producer.push(next) {
                next = back;
                thread::yield_now();
            }
        }
    });
    let bench = Bench::with_depth_per_target(2, Policy::Ordering, 1);
    let time = Time::starting_at(-MS);
    let target = Mock::with_latency(time.clone(), Nanos(MS));
    let (output, mut done) = RingBuffer::<CompletedIo>::new(64 + 2 * 65);
    let (counters, _, _, outcome) = bench.issuer_with_input(&time, target, input, output).run();
    outcome.unwrap();
    prepare.join().unwrap();
    let rows: Vec<_> = std::iter::from_fn(|| done.pop().ok()).map(|done| done.record).collect();
    assert!(by_request(rows.clone()).iter().map(|row| row.request).eq(0..64), "each once");
    assert!(rows.iter().all(|row| row.waiting <= 8), "no more than the queues hold");
    assert_eq!(counters.max_in_flight.max(2), 2);
}

proptest! {
    #[test]
    fn requests_in_flight_never_exceed_the_depth_of_a_target(
        requests in prop::collection::vec((0u16..3, 0i64..5, 0u64..20, 1i64..20), 1..80), depth in 1usize..4,
    ) {
        let targets: Vec<u16> = requests.iter().map(|r| r.0).collect();
        let takes: Vec<i64> = requests.iter().map(|r| r.3 * MS).collect();
        let mut at = 0;
        let load = requests.iter().enumerate().map(|(i, &(target, after, position, _))| {
            at += after * MS;
            // The length identifies the request.
            PreparedIo { target, ..write(i as u64, at, position * 1000, i as u64 + 1) }
        });
        let load: Vec<_> = load.collect();
        let responder = Box::new(move |io: &Io<'_>| (Nanos(takes[(io.length / 512) as usize - 1]), io.length as i64));
        let (rows, _) = Bench::with_depth_per_target(3, Policy::Partial, depth).run(load, responder);
        prop_assert_eq!(rows.len(), requests.len());
        for row in &rows {
            let in_flight = |other: &&IoResult| other.issued <= row.issued && other.completed > row.issued;
            let ordinary = |other: &&IoResult| !other.pushed_back;
            let target = targets[row.request as usize];
            let on_same_target = |other: &&IoResult| targets[other.request as usize] == target;
            prop_assert!(rows.iter().filter(on_same_target).filter(ordinary).filter(in_flight).count() <= depth);
        }
    }
}
