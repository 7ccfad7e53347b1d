use iosonar_pacing::live::DeviceName;
use iosonar_pacing::progress::Progress;
use iosonar_replay::result::live::{of_requests, row_of};
use iosonar_trace::{IoResult, Nanos, Op, Outcome, Request, Sector, Sectors};

use super::*;

const HOSTILE: &str = "<b onload=\"x\">\\n\n{evil=\"1\"} 1\nevil 2 µ";

fn run() -> Run {
    let live = of_requests(true);
    live.name_devices(vec![DeviceName { source: HOSTILE.into(), target: HOSTILE.into() }]);
    for number in 0..100_u64 {
        let op = if number % 4 == 0 { Op::Write } else { Op::Read };
        let request = Request::new(Nanos(1000), op, Sector(0), Sectors(8));
        let (issued, completed) = (Some(Nanos(3500)), Some(Nanos(3500 + 1000 * number as i64)));
        live.add(&row_of(&IoResult {
            issued,
            completed,
            bytes_done: 4096,
            outcome: Outcome::Ok,
            ..IoResult::of(&request, number)
        }));
    }
    let about =
        vec![("kind", "requests".to_owned()), ("input", HOSTILE.to_owned()), ("output", "a.replay.parquet".to_owned())];
    Run { progress: Arc::new(Progress::with_live(Some(live))), expected: Arc::default(), about }
}

fn page(format: Format) -> String {
    String::from_utf8(format.encode(families(&run())).unwrap()).unwrap()
}

#[test]
fn names_cannot_add_lines_or_labels() {
    let escaped = r#""<b onload=\"x\">\\n\n{evil=\"1\"} 1\nevil 2 µ""#;
    for format in [Format::Text, Format::OpenMetrics] {
        let page = page(format);
        assert!(
            page.contains(&format!("iosonar_device_rows_total{{device={escaped},target={escaped}}} 100\n")),
            "{page}"
        );
        assert!(page.contains(&format!("input={escaped},")), "{page}");
        assert!(page.lines().all(|line| line.starts_with("iosonar_") || line.starts_with("# ")), "{page}");
    }
}

#[test]
fn both_texts_have_the_counts() {
    let [text, open] = [Format::Text, Format::OpenMetrics].map(page);
    for page in [&text, &open] {
        for line in [
            "iosonar_completed_total 100",
            "iosonar_rows_total{operation=\"read\",outcome=\"ok\"} 75",
            "iosonar_moved_bytes_total{operation=\"write\"} 102400",
            "iosonar_in_flight 0",
            "iosonar_latency_seconds_count{operation=\"write\"} 25",
            "iosonar_state{state=\"prepare\"} 1",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }
    // 2.5 µs is the delay of all; latencies of writes are 0, 4, 8, 12 µs and so on.
    assert!(text.contains("iosonar_delay_seconds_bucket{operation=\"read\",le=\"2e-06\"} 0\n"), "{text}");
    assert!(text.contains("iosonar_delay_seconds_bucket{operation=\"read\",le=\"2.5e-06\"} 75\n"), "{text}");
    assert!(text.contains("{operation=\"write\",le=\"8e-06\"} 3\n"), "{text}");
    assert!(open.ends_with("# EOF\n") && !text.contains("# EOF"));
    assert!(
        text.contains("# TYPE iosonar_completed_total counter\n")
            && open.contains("# TYPE iosonar_completed counter\n")
    );
}

#[test]
fn clients_choose_the_format() {
    let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let rest = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    assert_eq!(Format::accepted(&format!("{protobuf},{rest}")), Format::Protobuf);
    assert_eq!(Format::accepted(rest), Format::OpenMetrics);
    assert_eq!(Format::accepted("text/html, */*;q=0.8"), Format::Text);
    assert_eq!(Format::accepted(""), Format::Text);
    assert_eq!(Format::accepted("application/openmetrics-text;q=0, text/plain"), Format::Text);
}

#[test]
fn addresses_are_of_this_machine_unless_given() {
    let of = |text: &str| text.parse::<Address>().map(|address| (address.host, address.port));
    assert_eq!(of("9464"), Ok((None, 9464)));
    assert_eq!(of(":9464"), Ok((None, 9464)));
    assert_eq!(of("0.0.0.0:1"), Ok((Some("0.0.0.0".into()), 1)));
    assert_eq!(of("[::1]:9464"), Ok((Some("::1".into()), 9464)));
    for wrong in ["", "x", "1.2.3.4", "::1:9464", "[::1:9464", "h:99999"] {
        assert!(of(wrong).is_err(), "{wrong}");
    }
}

/// A reader of the messages that knows only their wire format.
fn fields(mut message: &[u8]) -> Vec<(u64, Vec<u8>, u64)> {
    fn varint(message: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = message.split_first().unwrap();
            *message = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let (bytes, number) = match key & 7 {
            0 => (Vec::new(), varint(&mut message)),
            1 => {
                let (double, rest) = message.split_at(8);
                message = rest;
                (Vec::new(), u64::from_le_bytes(double.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut message) as usize;
                let (bytes, rest) = message.split_at(length);
                message = rest;
                (bytes.to_vec(), 0)
            }
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, bytes, number));
    }
    found
}

#[test]
fn native_histograms_hold_all_times() {
    let encoded = Format::Protobuf.encode(families(&run())).unwrap();
    // As fields 1 of one message: each family follows its length.
    let mut rest = &encoded[..];
    let mut seen = Vec::new();
    while !rest.is_empty() {
        let (mut length, mut shift) = (0, 0);
        loop {
            let byte = rest[0];
            rest = &rest[1..];
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (family, after) = rest.split_at(length);
        rest = after;
        let family = fields(family);
        let name = String::from_utf8(family[0].1.clone()).unwrap();
        if name == "iosonar_latency_seconds" {
            let histogram = |metric: &[u8]| fields(metric).into_iter().find(|(field, ..)| *field == 7).unwrap().1;
            for metric in family.iter().filter(|(field, ..)| *field == 4) {
                let histogram = fields(&histogram(&metric.1));
                let number = |field: u64| histogram.iter().find(|(found, ..)| *found == field).unwrap().2;
                let spans: u64 =
                    histogram.iter().filter(|(field, ..)| *field == 12).map(|(_, span, _)| fields(span)[1].2).sum();
                let packed = &histogram.iter().find(|(field, ..)| *field == 13).unwrap().1;
                // Varints of one byte each: counts are small.
                let deltas: Vec<i64> = packed.iter().map(|byte| i64::from(byte >> 1) ^ -i64::from(byte & 1)).collect();
                let mut count = 0;
                let positive: i64 = deltas
                    .iter()
                    .map(|delta| {
                        count += delta;
                        count
                    })
                    .sum();
                assert_eq!((spans, positive as u64 + number(7)), (deltas.len() as u64, number(1)));
            }
        }
        seen.push(name);
    }
    for name in ["iosonar_completed_total", "iosonar_latency_seconds", "iosonar_delay_seconds", "iosonar_in_flight"] {
        assert!(seen.iter().any(|found| found == name), "{seen:?}");
    }
}
