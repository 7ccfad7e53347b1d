//! Transactions of several steps, and flushes.

use super::*;

const TRANSACTION: &str = r#"
[devices]
log = "10%"
data = "90%"
[[stream]]
name = "t"
device = "data"
closed = true
sizes = "8k"
requests = 12
[[stream.step]]
op = "read"
repeat = 2
[[stream.step]]
op = "write"
same = true
[[stream.step]]
op = "fua"
device = "log"
sizes = "4k"
positions = "append"
wait = false
[[stream.step]]
op = "flush"
device = "log"
"#;

#[test]
fn a_step_waits_for_all_before_it_unless_issued_at_once() {
    let all = on_a_device(&program(TRANSACTION), &together(), Nanos::MAX);
    assert_eq!(all.len(), 15, "a transaction that has begun is finished");
    assert_eq!(millis(&all), [0, 1, 2, 2, 3, 4, 5, 6, 6, 7, 8, 9, 10, 10, 11]);
    let log = 16 * GIB / 10 / 8 * 8;
    for (number, transaction) in all.chunks(5).enumerate() {
        let requests: Vec<_> = transaction.iter().map(|(submitted, _)| submitted.spec).collect();
        let ops: Vec<_> = requests.iter().map(|spec| (spec.op, spec.flags)).collect();
        let (read, write) = ((Op::Read, Flags::NONE), (Op::Write, Flags::NONE));
        assert_eq!(ops, [read, read, write, (Op::Write, Flags::FUA), (Op::Flush, Flags::NONE)]);
        assert_eq!(
            (requests[1].sector, requests[1].sectors),
            (requests[2].sector, requests[2].sectors),
            "the same place"
        );
        assert!(requests[..3].iter().all(|spec| spec.sector.0 >= log && spec.sectors == Sectors(16)));
        assert_eq!((requests[3].sector, requests[3].sectors), (Sector(number as u64 * 8), Sectors(8)), "appended");
        assert_eq!((requests[4].sector, requests[4].sectors), (Sector(0), Sectors(0)));
        assert!(requests.iter().all(|spec| spec.device == DeviceId(0)), "side by side on one target");
    }
    let separate = Settings::new(Layout::Separate(vec![Sectors(GIB), Sectors(GIB)]));
    let all = on_a_device(&program(TRANSACTION), &separate, Nanos::MAX);
    let devices: Vec<_> = all[..5].iter().map(|(submitted, _)| submitted.spec.device.0).collect();
    assert_eq!(devices, [1, 1, 1, 0, 0]);
    let names: Vec<_> = program(TRANSACTION).place(&separate).unwrap().devices().into_iter().map(|d| d.name).collect();
    assert_eq!(names, ["log", "data"], "in the order of the text");
}

#[test]
fn open_transactions_begin_at_their_arrivals_within_the_depth() {
    let text = TRANSACTION.replace("closed = true", "arrivals = \"uniform rate=1k\"").replace("12", "500");
    let begins = |text: &str| -> Vec<i64> {
        let all = on_a_device(&program(text), &together(), Nanos::MAX);
        assert_eq!(all.len(), 500);
        let reads = all.iter().filter(|(submitted, _)| submitted.spec.op == Op::Read && submitted.cause.is_none());
        reads.map(|(submitted, _)| submitted.at.0 / 1_000_000).collect()
    };
    let free = begins(&text);
    assert_eq!(free.len(), 100);
    assert!(free.windows(2).all(|w| w[1] - w[0] == 1), "one each millisecond: {free:?}");
    // Four at a time, of 4 ms each, keep up; two do not, so others wait for them.
    assert_eq!(begins(&text.replace("sizes = \"8k\"", "sizes = \"8k\"\ndepth = 5")), free);
    assert!(
        on_a_device(&program(&text.replace("sizes = \"8k\"", "sizes = \"8k\"\ndepth = 2")), &together(), Nanos::MAX)
            .last()
            .is_some_and(|(_, at)| at.0 > 195_000_000)
    );
    assert!(!program(&text).streams()[0].is_open, "its requests wait for others");
}

#[test]
fn many_requests_at_once_are_all_issued_at_the_same_time() {
    let text = "[[stream]]\nname = \"s\"\nend = \"10s\"\narrivals = \"uniform rate=2\"\nop = \"write\"\n[[stream.step]]\nrepeat = 100\nwait = false\n";
    let all = open_requests(&program(text), &together(), 9.9);
    assert_eq!(all.len() % 100, 0);
    assert!(all.len() >= 1800 && all.chunks(100).all(|chunk| chunk.iter().all(|request| request.at == chunk[0].at)));
    let closed = text.replace("arrivals = \"uniform rate=2\"", "closed = true\ndepth = 3\nrequests = 600");
    let all = on_a_device(&program(&closed), &together(), Nanos::MAX);
    assert_eq!(all.len(), 600);
    assert!(millis(&all)[..300].iter().all(|at| *at == 0) && millis(&all)[300..].iter().all(|at| *at == 1));
}

/// Letters of the operations, in the order in which they were asked for.
fn letters(all: &[(SubmittedRequest, Nanos)]) -> String {
    let mut submitted: Vec<&SubmittedRequest> = all.iter().map(|(submitted, _)| submitted).collect();
    submitted.sort_by_key(|submitted| (submitted.at, submitted.request));
    submitted.iter().map(|submitted| format!("{:?}", submitted.spec.op).remove(0)).collect()
}

#[test]
fn a_flush_follows_each_so_many_writes() {
    let until = Nanos::from_secs(1.0);
    let run = |text: &str| on_a_device(&program(&format!("[[stream]]\nname = \"s\"\n{text}")), &together(), until);
    // The last writes of a stream are not flushed, as in fio.
    let closed = "closed = true\nop = \"write\"\nrequests = 8\n";
    assert_eq!(letters(&run(&format!("{closed}flush_every = 1\n"))), "WFWFWFWFWFWFWFW");
    assert_eq!(letters(&run(&format!("{closed}flush_every = 3\n"))), "WWWFWWWFWW");
    assert_eq!(letters(&run(&format!("{closed}flush_every = 3\ndepth = 4\n"))), "WWWFWWWFWW");
    assert_eq!(letters(&run(&format!("{closed}flush_every = 3\nthink = \"constant value=5ms\"\n"))), "WWWFWWWFWW");
    // Within a transaction, too; and of several requests at once.
    assert_eq!(letters(&run(&format!("{closed}flush_every = 3\n[[stream.step]]\nrepeat = 8\n"))), "WWWFWWWFWW");
    let at_once = run(&format!("{closed}flush_every = 3\n[[stream.step]]\nrepeat = 8\nwait = false\n"));
    assert_eq!(letters(&at_once), "WWWFWWWFWW");
    // Reads do not count.
    let mixed = letters(&run("closed = true\nmix = \"read=50,write=50\"\nrequests = 200\nflush_every = 4\n"));
    let writes = mixed.replace('R', "");
    assert!(mixed.contains('R') && writes.starts_with("WWWWFWWWWFWWWWF"), "{mixed}");
    let (flushes, writes) = (writes.matches('F').count(), writes.matches('W').count());
    assert!(flushes == writes / 4 || flushes == (writes - 1) / 4, "{mixed}");
}

#[test]
fn a_flush_of_an_open_stream_comes_when_its_write_has_completed() {
    let text =
        "[[stream]]\nname = \"s\"\narrivals = \"uniform rate=100\"\nop = \"write\"\nrequests = 6\nflush_every = 2\n";
    let all = on_a_device(&program(text), &together(), Nanos::from_secs(1.0));
    assert_eq!(letters(&all), "WWFWWFWWF");
    let mut submitted = all.iter().map(|(submitted, _)| submitted.at.0).collect::<Vec<_>>();
    submitted.sort_unstable();
    // A request takes a millisecond on this device.
    assert_eq!(submitted[2] - submitted[1], 1_000_000);
    // A load has no completions: the flush has the time of the write.
    let requests = open_requests(&program(text), &together(), 1.0);
    assert_eq!(requests.iter().map(|r| format!("{:?}", r.op).remove(0)).collect::<String>(), "WWFWWFWWF");
    assert_eq!((requests[2].at, requests[2].sectors), (requests[1].at, Sectors(0)));
}

#[test]
fn a_transaction_is_one_of_the_steps_with_weights() {
    let program = program(
        "[[stream]]\nname = \"s\"\nclosed = true\ndepth = 4\nrequests = 20_000\npositions = \"sequential\"\n\
         [[stream.step]]\nop = \"read\"\nweight = 3\nregion = \"1G\"\n\
         [[stream.step]]\nop = \"write\"\nweight = 1\nregion = \"1G..2G\"\nsizes = \"64k\"",
    );
    let all = on_a_device(&program, &together(), Nanos::MAX);
    let (reads, writes): (Vec<_>, Vec<_>) =
        all.iter().map(|(submitted, _)| submitted.spec).partition(|spec| spec.op == Op::Read);
    assert_eq!(reads.len() + writes.len(), 20_000);
    // Five standard deviations of a binomial count.
    assert!((reads.len() as f64 - 15_000.0).abs() < 5.0 * (20_000.0_f64 * 0.75 * 0.25).sqrt(), "{}", reads.len());
    // Each step has positions of its own.
    assert!(reads.iter().zip(0..).all(|(spec, n)| spec.sector.0 == n * 8 % GIB));
    assert!(writes.iter().zip(0..).all(|(spec, n)| spec.sector.0 == GIB + n * 128 % GIB));
}
