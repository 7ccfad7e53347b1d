//! The engine with simulated devices, without the loop.

use iosonar_pacing::clock::Virtual;
use iosonar_trace::{Flags, Op};

use super::presets::PRESETS;
use super::simulation::Simulation;
use super::*;
use crate::engine::mock::Time;

fn read(slot: u32, key: u64, block: u64) -> Io<'static> {
    Io { slot, key, target: 0, op: Op::Read, flags: Flags::NONE, offset: block * 4096, length: 4096, buffer: None }
}

/// Completion times, in half milliseconds, of ten requests that are submitted together and take 1 ms each.
fn completion_times(servers: &str) -> Vec<i64> {
    let device = format!("constant=1ms{servers}").parse::<Simulation>().unwrap().device(10, 1).unwrap();
    let mut target = Simulate::new(Time::starting_at(0), device, 10);
    (0..10).for_each(|slot| target.stage(read(slot, u64::from(slot), 0)));
    target.submit().unwrap();
    let mut seen = Vec::new();
    for half_ms in 0..30 {
        // Submitting took 1 ns.
        target.clock = Time::starting_at(half_ms * 500_000 + 10);
        while let Some(completion) = target.reap() {
            assert_eq!(
                completion,
                Completion { slot: seen.len() as u32, result: 4096, issued: None },
                "first come, first served"
            );
            seen.push(half_ms);
        }
    }
    seen
}

#[test]
fn requests_queue_for_servers_and_take_their_service_time() {
    assert_eq!(completion_times(""), [2; 10]);
    assert_eq!(completion_times(" servers=20"), [2; 10]);
    assert_eq!(completion_times(" servers=1"), (1..=10).map(|n| n * 2).collect::<Vec<_>>());
    assert_eq!(completion_times(" servers=4"), [2, 2, 2, 2, 4, 4, 4, 4, 6, 6]);
}

#[test]
fn waiting_ends_at_the_next_completion_and_never_without_one() {
    let clock = Virtual::starting_in(Nanos::ZERO);
    let device = "constant=1ms".parse::<Simulation>().unwrap().device(10, 1).unwrap();
    let mut target = Simulate::new(clock.clone(), device, 10);
    target.wait(Nanos::MAX).unwrap();
    assert_eq!(clock.now(), Nanos::ZERO);
    target.stage(read(3, 3, 0));
    target.submit().unwrap();
    target.wait(Nanos(400_000)).unwrap();
    assert_eq!((clock.now(), target.reap()), (Nanos(400_000), None));
    target.wait(Nanos::MAX).unwrap();
    assert_eq!((clock.now(), target.reap().map(|done| done.slot)), (Nanos(1_000_000), Some(3)));
}

#[test]
fn every_preset_is_valid_and_depends_only_on_seed_and_requests() {
    for preset in PRESETS {
        let simulation: Simulation = preset.name.parse().unwrap();
        let Simulation::Described { description, .. } = &simulation else { panic!("{}", preset.name) };
        assert!(!description.description.is_empty());
        assert!(preset.text.starts_with("# "), "the source of its numbers");
        let ends = |seed: u64, first: i64| -> Vec<i64> {
            let mut device = simulation.device(64, seed).unwrap();
            let ops = [Op::Write, Op::Read, Op::Read, Op::Flush, Op::Discard];
            let requests = (0..200).map(|number| Arrival {
                at: Nanos(first + number as i64 * 50_000),
                key: number,
                op: ops[number as usize % ops.len()],
                flags: Flags::NONE,
                offset: number * 7_777 * 4096,
                length: if number % 5 == 3 { 0 } else { 16_384 },
                in_device: 0,
            });
            requests.map(|request| device.arrive(0, &request).unwrap().0 - first).collect()
        };
        assert_eq!(ends(1, 0), ends(1, 12_345), "{}: the time of the start does not matter", preset.name);
        assert_ne!(ends(1, 0), ends(2, 0), "{}", preset.name);
        assert!(ends(1, 0).iter().zip(0..).all(|(end, number)| *end >= number * 50_000), "{}", preset.name);
    }
}
