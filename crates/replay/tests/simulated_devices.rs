//! Simulated devices in virtual time have known answers: queues have the waiting times of theory, and each planted property
//! is found again by a computation from the rows of the result alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::AtomicU32;

use iosonar_pacing::Stop;
use iosonar_pacing::clock::Virtual;
use iosonar_pacing::idle::{Idle, Turn};
use iosonar_pacing::stalls::StallMonitor;
use iosonar_replay::PreparedIo;
use iosonar_replay::engine::Target;
use iosonar_replay::engine::simulate::Simulate;
use iosonar_replay::engine::simulate::description::Description;
use iosonar_replay::engine::simulate::device::Device;
use iosonar_replay::engine::simulate::simulation::Simulation;
use iosonar_replay::issuer::conflicts::{Policy, Strong};
use iosonar_replay::issuer::{IssueRules, Issuer, IssuerParts, Limits, Pace, Think};
use iosonar_trace::{IoResult, Nanos, Op, Sector, Sectors};
use rtrb::RingBuffer;

/// Whether this is a part of `acceptance_simulated_devices`.
const IS_ACCEPTANCE: bool = env!("CARGO_CRATE_NAME").len() > "simulated_devices".len();

/// Requests for the waiting times of queues.
const REQUESTS: usize = if IS_ACCEPTANCE { 1_000_000 } else { 20_000 };

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;

struct Advance;

impl<T: Target> Idle<T> for Advance {
    const DEADLINE_MARGIN: Nanos = Nanos(i64::MIN);

    fn idle(&mut self, left: Nanos, target: &mut T) -> std::io::Result<Turn> {
        target.wait(if left > Nanos::ZERO { left } else { Nanos::MAX }).map(|()| Turn::Simulated)
    }
}

/// Rows of a run in virtual time, by request. Each request is its time, operation, first sector and sectors.
fn run(device: Device, load: &[(i64, Op, u64, u64)], pace: Pace, depth: usize) -> Vec<IoResult> {
    let (mut input_sender, input) = RingBuffer::new(load.len());
    for (request, &(at, op, sector, sectors)) in (0..).zip(load) {
        let prepared = PreparedIo::new(request, op, Sector(sector), Sectors(sectors), Nanos(at));
        input_sender.push(prepared).expect("there is room for the load");
    }
    drop(input_sender);
    let (output, mut done) = RingBuffer::new(load.len() + 2 * depth + 64);
    let limits = Limits { depth, clients: depth, pushed_back: 64, batch: 64, queues: 1, shared: 0, until: Nanos::MAX };
    let (clock, stop, in_flight) = (Virtual::starting_in(Nanos(MS)), Stop::default(), AtomicU32::new(0));
    let parts = IssuerParts {
        target: Simulate::new(clock.clone(), device, limits.slots()),
        clock,
        idle: Advance,
        rules: IssueRules { pace, policy: Policy::Allow, strong: Strong::AnyWrite, limits },
        stop: &stop,
        input,
        output,
        stall_monitor: StallMonitor::new(&in_flight, RingBuffer::new(64).0),
        rereader: None,
        program: None,
    };
    Issuer::new(parts).run().3.expect("the loop does not fail");
    let mut rows: Vec<_> = std::iter::from_fn(|| done.pop().ok()).map(|done| done.record).collect();
    assert_eq!(rows.len(), load.len());
    rows.sort_by_key(|row| row.request);
    rows
}

fn described(text: &str) -> Device {
    Device::new(&Description::parse("device", text).unwrap(), 4096, 1).unwrap()
}

fn issued(row: &IoResult) -> i64 {
    row.issued.unwrap().0
}

fn completed(row: &IoResult) -> i64 {
    row.completed.unwrap().0
}

fn latency(row: &IoResult) -> i64 {
    completed(row) - issued(row)
}

fn mean(values: impl Iterator<Item = i64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value as f64, count + 1));
    sum / f64::from(count)
}

/// Requests per second.
fn throughput(rows: &[IoResult]) -> f64 {
    let first = rows.iter().map(issued).min().unwrap();
    rows.len() as f64 / (rows.iter().map(completed).max().unwrap() - first) as f64 * 1e9
}

#[track_caller]
fn assert_close(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "found {found}, expected {expected}");
}

/// Uniform random numbers from 0 to below 1, by SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() * limit as f64) as u64
    }
}

/// Reads with exponential times between them.
fn poisson(seed: u64, count: usize, mean_ns: f64) -> Vec<(i64, Op, u64, u64)> {
    let (mut random, mut at) = (Random(seed), 0.0);
    let next = |_| {
        at -= (1.0 - random.next()).ln() * mean_ns;
        (at as i64, Op::Read, 0, 8)
    };
    (0..count).map(next).collect()
}

fn every(ns: i64, count: usize, mut request: impl FnMut(u64) -> (Op, u64, u64)) -> Vec<(i64, Op, u64, u64)> {
    let at = |number: usize| {
        let (op, sector, sectors) = request(number as u64);
        (number as i64 * ns, op, sector, sectors)
    };
    (0..count).map(at).collect()
}

/// The times from issue to the start of service, from issue and completion times: each request goes to the server that is
/// free first.
fn waits(rows: &[IoResult], servers: usize) -> Vec<i64> {
    let mut free: BinaryHeap<_> = (0..servers).map(|_| Reverse(i64::MIN)).collect();
    let wait = |row: &IoResult| {
        let start = free.pop().unwrap().0.max(issued(row));
        free.push(Reverse(completed(row)));
        start - issued(row)
    };
    rows.iter().map(wait).collect()
}

/// The standard error of the mean of successive values, by the means of 20 batches.
fn standard_error(values: &[i64]) -> f64 {
    let means: Vec<_> = values.chunks(values.len() / 20).map(|batch| mean(batch.iter().copied())).collect();
    let (count, of_all) = (means.len() as f64, means.iter().sum::<f64>() / means.len() as f64);
    (means.iter().map(|mean| (mean - of_all).powi(2)).sum::<f64>() / (count - 1.0) / count).sqrt()
}

/// The probability to wait of M/M/c, by Erlang's formula, at a load of `a` servers.
fn erlang_c(servers: u32, a: f64) -> f64 {
    let blocking = (1..=servers).fold(1.0, |b, n| a * b / (f64::from(n) + a * b));
    let utilisation = a / f64::from(servers);
    blocking / (1.0 - utilisation * (1.0 - blocking))
}

/// Mean waiting times of a queue with mean service times of 1 ms, at utilisations 0.5 and 0.8: within 2 % of the expected
/// ones for 10^6 requests, within three standard errors for few.
fn check_waits(service: &str, servers: u32, expected: impl Fn(f64) -> f64) {
    for (utilisation, seed) in [(0.5, 11), (0.8, 12)] {
        let simulation: Simulation = format!("{service}=1ms servers={servers}").parse().unwrap();
        let between = 1e6 / (utilisation * f64::from(servers));
        let load = poisson(seed, REQUESTS, between);
        let rows = run(simulation.device(4096, 1).unwrap(), &load, Pace::Timed, 4096);
        assert!(rows.iter().all(|row| row.delay() == Some(Nanos::ZERO)));
        let waits = waits(&rows, servers as usize);
        let (found, expected) = (mean(waits.iter().copied()), expected(utilisation) * 1e6);
        let tolerance = if IS_ACCEPTANCE { 0.02 } else { 3.0 * standard_error(&waits) / expected };
        println!("{service}, {servers} servers, utilisation {utilisation}: {found} ns for {expected}, {tolerance}");
        assert_close(found, expected, tolerance);
        // Little's law: the mean number of requests in the device, over time, is their rate times their mean latency. By
        // PASTA, those that arrive find this number too.
        let found = mean(rows.iter().map(|row| i64::from(row.in_flight) - 1));
        let span = rows.iter().map(completed).max().unwrap() - issued(&rows[0]);
        let by_law = mean(rows.iter().map(latency)) * rows.len() as f64 / span as f64;
        assert_close(found, by_law, if IS_ACCEPTANCE { 0.01 } else { 0.05 });
        assert_close(mean_in_device(&rows), by_law, 1e-6);
    }
}

/// The mean number of requests in the device over time, by counting up and down.
fn mean_in_device(rows: &[IoResult]) -> f64 {
    let mut changes: Vec<_> = rows.iter().flat_map(|row| [(issued(row), 1), (completed(row), -1)]).collect();
    changes.sort_unstable();
    let mut in_device = 0;
    let area = changes.windows(2).map(|pair| {
        in_device += pair[0].1;
        (pair[1].0 - pair[0].0) as f64 * f64::from(in_device)
    });
    area.sum::<f64>() / (changes[changes.len() - 1].0 - changes[0].0) as f64
}

#[test]
fn an_m_m_1_queue_has_its_waiting_times() {
    check_waits("exponential", 1, |utilisation| utilisation / (1.0 - utilisation));
}

#[test]
fn an_m_d_1_queue_has_its_waiting_times() {
    check_waits("constant", 1, |utilisation| utilisation / (1.0 - utilisation) / 2.0);
}

#[test]
fn an_m_m_c_queue_has_its_waiting_times() {
    check_waits("exponential", 4, |utilisation| erlang_c(4, 4.0 * utilisation) / (4.0 * (1.0 - utilisation)));
}

#[test]
fn the_throughput_of_a_closed_loop_is_depth_over_response_time() {
    for (depth, device) in
        [(1, "exponential=1ms servers=4"), (16, "exponential=1ms servers=4"), (32, "lognormal=1ms:1")]
    {
        let device = device.parse::<Simulation>().unwrap().device(4096, 1).unwrap();
        let load = every(0, 20_000, |_| (Op::Read, 0, 8));
        let rows = run(device, &load, Pace::Closed(Think::Never), depth);
        assert_close(throughput(&rows), depth as f64 / mean(rows.iter().map(latency)) * 1e9, 0.01);
    }
}

#[test]
fn only_an_open_load_has_growing_delays_in_an_overload() {
    let load = every(MS / 2, 8_000, |_| (Op::Read, 0, 8));
    let device = || "exponential=1ms servers=1".parse::<Simulation>().unwrap().device(4096, 1).unwrap();
    let quarters = |pace| {
        let rows = run(device(), &load, pace, 32);
        let delay = |row: &IoResult| row.delay().unwrap().0;
        [0, 2_000, 4_000, 6_000].map(|from| mean(rows[from..from + 2_000].iter().map(delay)) / 1e9)
    };
    let open = quarters(Pace::Timed);
    // It is behind by half of the time, so each quarter adds about a second.
    for pair in open.windows(2) {
        assert_close(pair[1] - pair[0], 1.0, 0.1);
    }
    assert_eq!(quarters(Pace::Closed(Think::Never)), [0.0; 4]);
}

#[test]
fn the_cliff_of_a_write_cache_comes_after_the_computed_bytes() {
    let device = "servers = 1\n[service.constant]\ntime = \"5ms\"\n[write_cache]\nsize = \"64M\"\ntime = \"50us\"\n\
                  destage = \"20M/s\"\n";
    // 64 KiB each 1 ms: 62.5 MiB/s.
    let load = every(MS, 4_000, |number| (Op::Write, number * 128, 128));
    let rows = run(described(device), &load, Pace::Timed, 4096);
    let cliff = rows.iter().position(|row| latency(row) > 2 * latency(&rows[0])).expect("there is a cliff");
    let bytes: u64 = rows[..cliff].iter().map(|row| row.sectors.bytes()).sum();
    assert_close(bytes as f64, 64.0 * 62.5 / (62.5 - 20.0) * 1_048_576.0, 0.01);
    // From then on, writes complete at the rate of destaging.
    let behind = &rows[cliff + 100..];
    let span = completed(&behind[behind.len() - 1]) - completed(&behind[0]);
    assert_close((behind.len() - 1) as f64 * 65_536.0 / span as f64 * 1e9, 20.0 * 1_048_576.0, 0.01);
}

#[test]
fn queue_collapse_puts_the_best_throughput_at_64_to_128() {
    let device = "servers = 64\n[service.exponential]\nmean = \"5ms\"\n[collapse]\nbeyond = 128\ngrowth = 0.01\n";
    let load = every(0, 6_000, |_| (Op::Read, 0, 8));
    let depths = [8, 16, 32, 64, 128, 256, 512];
    let found = depths.map(|depth| throughput(&run(described(device), &load, Pace::Closed(Think::Never), depth)));
    let best = (0..depths.len()).max_by(|&a, &b| found[a].total_cmp(&found[b])).unwrap();
    assert!([64, 128].contains(&depths[best]), "{found:?}");
    assert!(found[0] * 7.0 < found[best] && found[6] * 3.0 < found[best], "{found:?}");
}

#[test]
fn periodic_stalls_have_their_period_length_and_phase() {
    let device = "[service.constant]\ntime = \"200us\"\n[stall]\nevery = \"3s\"\nlasts = \"80ms\"\n";
    let load = every(2 * MS, 15_000, |_| (Op::Read, 0, 8));
    let mut ends: Vec<_> = run(described(device), &load, Pace::Timed, 4096).iter().map(completed).collect();
    ends.sort_unstable();
    let gaps: Vec<_> =
        ends.windows(2).filter(|pair| pair[1] - pair[0] > 20 * MS).map(|pair| (pair[0], pair[1])).collect();
    assert_eq!(gaps.len(), 9, "in 30 s");
    for (number, (from, to)) in (1..).zip(gaps) {
        assert!((from - number * 3 * SECOND).abs() < 3 * MS && (to - from - 80 * MS).abs() < 3 * MS, "{from} {to}");
    }
}

#[test]
fn a_burst_bucket_ends_when_it_is_empty() {
    let device = "[service.constant]\ntime = \"1ms\"\n[[limit]]\niops = 300\nburst_requests = 4000\n";
    let load = every(MS, 10_000, |_| (Op::Read, 0, 8));
    let rows = run(described(device), &load, Pace::Timed, 65_536);
    let end = rows.iter().find(|row| latency(row) > 2 * MS).map(issued).expect("the bucket ends");
    assert_close(end as f64, 4000.0 / (1000.0 - 300.0) * 1e9, 0.01);
    let after: Vec<_> = rows.into_iter().filter(|row| issued(row) > end + SECOND).collect();
    let span = completed(&after[after.len() - 1]) - completed(&after[0]);
    assert_close((after.len() - 1) as f64 / span as f64 * 1e9, 300.0, 0.01);
}

#[test]
fn a_limit_of_bytes_is_a_flat_ceiling() {
    let device = "servers = 4\n[service.constant]\ntime = \"100us\"\n[[limit]]\nbytes_per_second = \"100M/s\"\n";
    let load = every(0, 4_000, |_| (Op::Read, 0, 128));
    let rows = run(described(device), &load, Pace::Closed(Think::Never), 32);
    assert_close(throughput(&rows) * 65_536.0, 100.0 * 1_048_576.0, 0.01);
}

#[test]
fn garbage_collection_comes_after_so_many_written_bytes() {
    let device = "servers = 4\n[service.constant]\ntime = \"100us\"\n[garbage_collection]\nafter = \"32M\"\n\
                  every = \"8M\"\nlasts = \"50ms\"\n";
    let load = every(MS, 3_000, |number| (if number % 2 == 0 { Op::Write } else { Op::Read }, number * 64, 64));
    let rows = run(described(device), &load, Pace::Timed, 4096);
    let (mut written, mut pauses, mut was_slow) = (0, Vec::new(), false);
    for row in &rows {
        let is_slow = latency(row) > 2 * MS;
        if is_slow && !was_slow {
            pauses.push(written);
        }
        was_slow = is_slow;
        written += if row.op == Op::Write { row.sectors.bytes() } else { 0 };
    }
    let expected = [32.0, 40.0].map(|mib| mib * 1_048_576.0);
    assert_eq!(pauses.len(), 2, "{pauses:?}");
    pauses.iter().zip(expected).for_each(|(found, expected)| assert_close(*found as f64, expected, 0.02));
}

#[test]
fn the_slow_member_of_a_stripe_is_found_by_position() {
    let device = "servers = 1\n[service.exponential]\nmean = \"200us\"\n[stripe]\nmembers = 4\nchunk = \"64K\"\n\
                  slow_member = 2\nfactor = 8\n";
    let mut random = Random(5);
    let load = every(10 * MS, 8_000, |_| (Op::Read, random.below(1 << 22) * 8, 8));
    let rows = run(described(device), &load, Pace::Timed, 4096);
    let of = |member| mean(rows.iter().filter(|row| row.sector.0 / 128 % 4 == member).map(latency));
    for fast in [0, 1, 3] {
        assert_close(of(2) / of(fast), 8.0, 0.1);
    }
}

#[test]
fn a_sorting_scheduler_serves_what_waits_by_position() {
    let device = "servers = 1\n[service.constant]\ntime = \"1ms\"\n[scheduler]\nsort = true\n";
    let mut random = Random(6);
    // Bursts of 16 each 100 ms: the first is served at once, the others upwards from it, then from the lowest one.
    let load: Vec<_> = (0..3_200).map(|n| (n / 16 * 100 * MS, Op::Read, random.below(1 << 27) * 8, 8)).collect();
    let rows = run(described(device), &load, Pace::Timed, 4096);
    for burst in rows.chunks(16) {
        let mut served: Vec<_> = burst.iter().map(|row| (completed(row), row.sector.0)).collect();
        served.sort_unstable();
        let turns = served.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
        assert!(turns <= 2, "{served:?}");
        assert_eq!(served[15].0 - served[0].0, 15 * MS);
    }
}

#[test]
fn an_idling_scheduler_waits_after_reads_that_nothing_continues() {
    let device = "servers = 1\n[service.constant]\ntime = \"1ms\"\n[scheduler]\nidle = \"7ms\"\n";
    let closed = Pace::Closed(Think::Never);
    let mut random = Random(8);
    let at_random = every(0, 1_000, |_| (Op::Read, random.below(1 << 30) * 8, 8));
    let in_sequence = every(0, 1_000, |number| (Op::Read, number * 8, 8));
    let writes = every(0, 1_000, |number| (Op::Write, number * 80, 8));
    for (load, per_s) in [(at_random, 125.0), (in_sequence, 1_000.0), (writes, 1_000.0)] {
        assert_close(throughput(&run(described(device), &load, closed, 8)), per_s, 0.01);
    }
}

#[test]
fn each_kind_of_access_has_its_own_service_time() {
    let device = "servers = 1\n[service.constant]\ntime = \"1ms\"\n[unwritten]\nchunk = \"1M\"\ntime = \"20us\"\n\
                  [first_write]\nchunk = \"1M\"\nextra = \"5ms\"\n[asymmetry]\nwrite = 2\n";
    // Each megabyte is read, written twice, and read again.
    let ops = [Op::Read, Op::Write, Op::Write, Op::Read];
    let load = every(20 * MS, 400, |number| (ops[number as usize % 4], number / 4 * 2048, 8));
    for row in run(described(device), &load, Pace::Timed, 64) {
        assert_eq!(latency(&row), [20_000, 7 * MS, 2 * MS, MS][row.request as usize % 4], "{row:?}");
    }
}

#[test]
fn a_read_cache_serves_its_share_of_the_working_set() {
    let device = "servers = 8\n[service.constant]\ntime = \"1ms\"\n[read_cache]\nsize = \"16M\"\ntime = \"10us\"\n";
    let mut random = Random(9);
    // 64 MiB, four times the cache, at random.
    let load = every(MS, 30_000, |_| (Op::Read, random.below(1 << 14) * 8, 8));
    let rows = run(described(device), &load, Pace::Timed, 4096);
    let hits = rows[10_000..].iter().filter(|row| latency(row) < MS / 2).count();
    assert_close(hits as f64 / 20_000.0, 0.25, 0.03);
}

#[test]
fn a_disk_is_fast_in_sequence_and_takes_its_mean_seek_at_random() {
    let disk = || "hdd".parse::<Simulation>().unwrap().device(4096, 1).unwrap();
    let mut random = Random(3);
    let closed = Pace::Closed(Think::Never);
    let load = every(0, 10_000, |_| (Op::Read, random.below(1 << 30) * 8, 8));
    // Of uniform positions, the mean root of the distance is 8/15 of that of the whole device. Half a rotation takes
    // 4.17 ms, the transfer 23 us.
    let rows = run(disk(), &load, closed, 1);
    assert_close(mean(rows.iter().map(latency)), (0.8 + 14.2 * 8.0 / 15.0 + 60e3 / 7200.0 / 2.0 + 0.023) * 1e6, 0.02);
    let load = every(0, 10_000, |number| (Op::Read, number * 256, 256));
    let rows = run(disk(), &load, closed, 1);
    assert_close(throughput(&rows) * 131_072.0, 170.0 * 1_048_576.0, 0.02);
}
