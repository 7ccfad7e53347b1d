//! When streams begin and end.

use super::*;

#[test]
fn a_stream_ends_after_its_bytes() {
    for kind in ["closed = true", "arrivals = \"uniform rate=1000\""] {
        let text = format!(
            "[[stream]]\nname = \"s\"\n{kind}\nop = \"write\"\nsizes = \"4k:50,12k:50\"\nregion = \"1M\"\n\
             positions = \"random-map\"\nbytes = \"1M\"\n"
        );
        let all = on_a_device(&program(&text), &together(), Nanos::from_secs(10.0));
        let mut sectors: Vec<u64> = all
            .iter()
            .flat_map(|(submitted, _)| submitted.spec.sector.0..submitted.spec.sector.0 + submitted.spec.sectors.0)
            .collect();
        sectors.sort_unstable();
        assert!(sectors.iter().copied().eq(0..2048), "{kind}");
        // Requests of 8 KiB on average would be 128; the map makes them shorter.
        assert!((135..220).contains(&all.len()), "{}", all.len());
    }
}

#[test]
fn a_stream_begins_when_the_streams_before_it_have_ended() {
    let program = program(
        "[[stream]]\nname = \"fill\"\nclosed = true\ndepth = 3\ninstances = 2\nop = \"write\"\nrequests = 30\n\
         [[stream]]\nname = \"trim\"\narrivals = \"uniform rate=100\"\nop = \"discard\"\nend = \"105ms\"\n\
         [[stream]]\nname = \"read\"\nclosed = true\ninstances = 3\nop = \"read\"\nrequests = 5\nafter = \"fill, trim\"\nstart = \"7ms\"\n\
         [[stream]]\nname = \"open\"\narrivals = \"uniform rate=1k\"\nop = \"flush\"\nrequests = 2\nafter = \"read\"\nend = \"10ms\"",
    );
    assert_eq!(program.streams().iter().map(|stream| stream.is_open).collect::<Vec<_>>(), [false, true, false, false]);
    assert_eq!(
        program.streams().iter().map(|stream| stream.has_timers).collect::<Vec<_>>(),
        [false, true, false, true]
    );
    let all = on_a_device(&program, &together(), Nanos::MAX);
    let of = |number: u16| all.iter().filter(move |(submitted, _)| submitted.stream == number);
    let ended = |number| of(number).map(|(_, at)| *at).max().unwrap();
    let began = |number| of(number).map(|(submitted, _)| submitted.at).min().unwrap();
    assert_eq!([0, 1, 2, 3].map(|number| of(number).count()), [60, 11, 15, 2]);
    // An open stream has ended when its last request was asked for.
    let (last_arrival, filled) = (of(1).map(|(submitted, _)| submitted.at).max().unwrap(), ended(0));
    assert_eq!(began(2), last_arrival.max(filled) + Nanos(7_000_000));
    assert_eq!(began(3), ended(2));
}

#[test]
fn a_stream_can_be_followed_by_many() {
    let followers: String = (0..40)
        .map(|n| format!("[[stream]]\nname = \"f{n}\"\nclosed = true\nop = \"read\"\nrequests = 2\nafter = \"a\"\n"))
        .collect();
    let program =
        program(&format!("[[stream]]\nname = \"a\"\narrivals = \"uniform\"\nop = \"read\"\nrequests = 1\n{followers}"));
    assert_eq!(on_a_device(&program, &together(), Nanos::MAX).len(), 81);
}

#[test]
fn the_open_part_has_streams_after_open_ones() {
    let program = program(
        "[[stream]]\nname = \"a\"\narrivals = \"uniform rate=10\"\nop = \"read\"\nrequests = 3\n\
         [[stream]]\nname = \"b\"\narrivals = \"uniform rate=10\"\nop = \"write\"\nafter = \"a\"\nrequests = 2",
    );
    let times: Vec<i64> = open_requests(&program, &together(), 10.0).iter().map(|r| r.at.0 / 1_000_000).collect();
    assert_eq!(times, [0, 100, 200, 200, 300]);
}

#[test]
fn passes_cover_the_region() {
    let count = |keys: &str| {
        let program = program(&format!("[[stream]]\nname = \"s\"\nclosed = true\nregion = \"1M\"\npasses = 2\n{keys}"));
        on_a_device(&program, &together(), Nanos::MAX).len()
    };
    assert_eq!(count("op = \"read\""), 512);
    assert_eq!(count("op = \"read\"\ninstances = 4\nown_region = true\nalign = \"4k\""), 512);
    assert_eq!(count("op = \"write\"\n[[stream.step]]\nrepeat = 4\n[[stream.step]]\nop = \"flush\""), 640);
    assert_eq!(count("op = \"discard\"\n[[stream.step]]\n[[stream.step]]\nop = \"write\"\nsame = true"), 1024);
    let weighted = "[[stream.step]]\nop = \"read\"\nweight = 1\n[[stream.step]]\nop = \"write\"\nweight = 1";
    assert_eq!(count(weighted), 512);
    assert_eq!(count(&weighted.replace("op = \"write\"", "op = \"write\"\nregion = \"1M..2M\"")), 1024);
}
