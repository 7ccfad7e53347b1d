//! Tests of the matcher.

mod not_requests;

use super::*;
use crate::error::Result;
use crate::model::metadata::Kind;
use crate::model::metadata::Metadata;
use crate::model::request::{Comm, DeviceId, Op, Request};
use crate::model::units::{Nanos, Sector, Sectors};
use crate::rows::Source;

struct Given(std::vec::IntoIter<Event>);

impl EventSource for Given {
    fn next(&mut self, _: &mut Metadata) -> Result<Option<Event>> {
        Ok(self.0.next())
    }

    fn progress(&self) -> Option<f64> {
        None
    }
}

/// `Q 10 R 100+8` and so on.
fn event(text: &str) -> Event {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [action, at, rwbs, place] = words[..] else { panic!("{text}") };
    let (sector, sectors) = place.split_once('+').unwrap();
    let sectors = sectors.parse().unwrap();
    let (op, flags) = crate::model::rwbs::parse(rwbs.as_bytes(), sectors).unwrap();
    Event {
        at: Nanos(at.parse().unwrap()),
        action: match action {
            "C" => Action::Complete,
            "E" => Action::Refuse,
            "X" => Action::Split,
            "R" => Action::Requeue,
            _ => Action::from_letter(action.chars().next().unwrap()).unwrap(),
        },
        device: DeviceId(0),
        sector: Sector(sector.parse().unwrap()),
        sectors: Sectors(sectors),
        op,
        flags,
        is_append: crate::model::rwbs::is_append(rwbs.as_bytes()),
        pid: None,
        comm: Comm::default(),
    }
}

fn matched(events: &[&str], action: Option<Action>) -> (Vec<Request>, Metadata) {
    let events: Vec<Event> = events.iter().map(|text| event(text)).collect();
    let mut metadata = Metadata::new(Kind::Load, "given");
    let mut matcher = Matcher::new(Given(events.into_iter()), action, &mut metadata).unwrap();
    let mut requests = Vec::new();
    while let Some(request) = matcher.next(&mut metadata).unwrap() {
        requests.push(request);
    }
    (requests, metadata)
}

/// Time, sector, queue time and latency of each request.
fn short(requests: &[Request]) -> Vec<(i64, u64, Option<i64>, Option<i64>)> {
    requests.iter().map(|r| (r.at.0, r.sector.0, r.queued.map(|t| t.0), r.latency.map(|t| t.0))).collect()
}

#[test]
fn queue_time_and_latency_are_found() {
    let events = [
        "Q 10 R 100+8",
        "G 11 R 100+8",
        "I 12 R 100+8",
        "D 15 R 100+8",
        "Q 16 W 100+8",
        "C 40 R 100+8",
        "C 50 W 100+8",
    ];
    let (requests, metadata) = matched(&events, None);
    assert_eq!(short(&requests), [(10, 100, Some(5), Some(25)), (16, 100, None, Some(34))]);
    assert_eq!(metadata.counts.unmatched, 0);
    let (requests, _) = matched(&events, Some(Action::Issue));
    assert_eq!(short(&requests), [(15, 100, Some(5), Some(25))]);
    let (requests, _) = matched(&events, Some(Action::Insert));
    assert_eq!(short(&requests), [(12, 100, Some(3), Some(25))]);
}

#[test]
fn the_most_frequent_action_is_chosen() {
    assert_eq!(matched(&["D 1 R 0+8", "D 2 R 8+8", "Q 3 R 16+8"], None).0.len(), 2);
    assert_eq!(matched(&["D 1 R 0+8", "Q 3 R 16+8"], None).0[0].at, Nanos(3));
    assert_eq!(matched(&["C 1 R 0+8"], None).0.len(), 0);
}

#[test]
fn merged_requests_complete_together() {
    let (requests, metadata) = matched(
        &["Q 1 W 0+8", "Q 2 W 8+8", "Q 3 W 16+8", "Q 4 W 100+8", "D 10 W 0+24", "C 20 W 0+24", "C 30 W 100+8"],
        None,
    );
    assert_eq!(
        short(&requests),
        [(1, 0, Some(9), Some(10)), (2, 8, Some(8), Some(10)), (3, 16, Some(7), Some(10)), (4, 100, None, Some(26))]
    );
    assert_eq!(metadata.counts.unmatched, 0);
}

#[test]
fn a_merged_request_has_the_queue_time_of_its_first_part() {
    let (requests, _) = matched(&["Q 1 W 8+8", "Q 2 W 0+8", "D 10 W 0+16", "C 20 W 0+16"], Some(Action::Issue));
    assert_eq!(short(&requests), [(10, 0, Some(9), Some(10))]);
}

#[test]
fn a_split_request_completes_with_its_last_part() {
    let (requests, metadata) = matched(
        &["Q 1 R 0+16", "D 2 R 0+8", "D 3 R 8+8", "C 10 R 8+8", "C 20 R 0+8", "Q 30 R 0+16"],
        Some(Action::Queue),
    );
    assert_eq!(short(&requests), [(1, 0, Some(1), Some(18)), (30, 0, None, None)]);
    assert_eq!(metadata.counts.unmatched, 1);
}

#[test]
fn of_equal_requests_the_oldest_completes_first() {
    let (requests, _) = matched(&["Q 1 R 0+8", "Q 2 R 0+8", "C 10 R 0+8", "C 30 R 0+8"], None);
    assert_eq!(short(&requests), [(1, 0, None, Some(9)), (2, 0, None, Some(28))]);
    let (requests, _) = matched(&["Q 1 R 0+8", "Q 2 R 0+16", "C 10 R 0+16", "C 30 R 0+8"], None);
    assert_eq!(short(&requests), [(1, 0, None, Some(29)), (2, 0, None, Some(8))]);
}

#[test]
fn requests_with_another_operation_are_not_matched() {
    let (requests, metadata) = matched(&["Q 1 R 0+8", "C 5 W 0+8", "C 9 R 0+8"], None);
    assert_eq!(short(&requests), [(1, 0, None, Some(8))]);
    assert_eq!(metadata.counts.unmatched, 0);
}

#[test]
fn flushes_are_matched_whatever_their_sector() {
    let (requests, _) = matched(&["Q 1 FWS 77+0", "D 2 FF 0+0", "C 9 FF 18446744073709551615+0"], None);
    assert_eq!(short(&requests), [(1, 77, Some(1), Some(7))]);
    assert_eq!(requests[0].op, Op::Flush);
}

#[test]
fn a_completion_without_a_length_completes_no_other_request() {
    let (requests, _) = matched(&["Q 1 WS 0+8", "D 2 WS 0+0", "C 3 WS 0+0", "C 9 WS 0+8"], None);
    assert_eq!(short(&requests), [(1, 0, None, Some(8))]);
}

#[test]
fn a_request_that_never_completes_is_released() {
    let mut events = vec!["Q 0 R 0+8".to_owned()];
    let seconds = 1_000_000_000_i64;
    for i in 1..1000 {
        events.push(format!("Q {} R {}+8", i * seconds, i * 8));
        events.push(format!("C {} R {}+8", i * seconds + 5, i * 8));
    }
    let texts: Vec<&str> = events.iter().map(String::as_str).collect();
    let (requests, metadata) = matched(&texts, None);
    assert_eq!(requests.len(), 1000);
    assert_eq!(metadata.counts.unmatched, 1);
    assert!(requests.iter().skip(1).all(|r| r.latency == Some(Nanos(5))));
}

/// The kernel issues all waiting flushes as one.
#[test]
fn flushes_issued_as_one_complete_together() {
    let events =
        ["Q 10 FWS 0+0", "Q 20 FWS 0+0", "D 30 FF 0+0", "C 40 FF 0+0", "Q 50 FWS 0+0", "D 60 FF 0+0", "C 70 FF 0+0"];
    let (requests, metadata) = matched(&events, Some(Action::Queue));
    assert_eq!(
        short(&requests),
        [(10, 0, Some(20), Some(10)), (20, 0, Some(10), Some(10)), (50, 0, Some(10), Some(10))]
    );
    assert_eq!(metadata.counts.unmatched, 0);
    let (requests, _) = matched(&events, Some(Action::Issue));
    assert_eq!(short(&requests), [(30, 0, Some(20), Some(10)), (60, 0, Some(10), Some(10))]);
}

#[test]
fn the_preflush_of_a_write_completes_no_other_flush() {
    let events = [
        "Q 0 FWFS 1000+8",
        "D 1 FN 0+0",
        "Q 4 FWS 0+0",
        "C 5 FN 0+0",
        "D 6 WS 1000+8",
        "D 7 FN 0+0",
        "C 8 WS 1000+8",
        "C 20 FN 0+0",
    ];
    let (requests, metadata) = matched(&events, Some(Action::Queue));
    assert_eq!(short(&requests), [(0, 1000, Some(6), Some(2)), (4, 0, Some(3), Some(13))]);
    assert_eq!(metadata.counts.unmatched, 0);
}

#[test]
fn a_requeued_request_is_issued_again() {
    let events = ["Q 0 W 100+8", "D 1 W 100+8", "R 2 W 100+8", "D 3 W 100+8", "C 4 W 100+8"];
    let again = ["Q 50 W 100+8", "D 51 W 100+8", "C 52 W 100+8"];
    let all = [&events[..], &again].concat();
    for (action, expected) in [
        (Action::Queue, [(0, 100, Some(3), Some(1)), (50, 100, Some(1), Some(1))]),
        (Action::Issue, [(3, 100, Some(3), Some(1)), (51, 100, Some(1), Some(1))]),
    ] {
        let (requests, metadata) = matched(&all, Some(action));
        assert_eq!(short(&requests), expected);
        assert_eq!(metadata.counts.unmatched, 0);
    }
}

#[test]
fn a_requeued_flush_is_issued_again() {
    let once = ["Q 0 FWS 0+0", "D 1 FN 0+0", "R 2 FN 0+0", "D 3 FN 0+0", "C 4 FN 0+0"];
    let again = ["Q 50 FWS 0+0", "D 51 FN 0+0", "C 52 FN 0+0"];
    for (action, expected) in [
        (Action::Queue, [(0, 0, Some(3), Some(1)), (50, 0, Some(1), Some(1))]),
        (Action::Issue, [(3, 0, Some(3), Some(1)), (51, 0, Some(1), Some(1))]),
    ] {
        let (requests, metadata) = matched(&[&once[..], &again].concat(), Some(action));
        assert_eq!((short(&requests), metadata.counts.unmatched), (expected.to_vec(), 0), "{action:?}");
    }
    let another = ["Q 0 FWS 0+0", "D 1 FN 0+0", "Q 2 FWS 0+0", "R 3 FN 0+0", "D 4 FN 0+0", "C 5 FN 0+0"];
    assert_eq!(short(&matched(&another, Some(Action::Issue)).0), [(4, 0, Some(4), Some(1))]);
}

#[test]
fn of_equal_requests_the_oldest_is_issued_first() {
    let events = ["Q 0 R 100+8", "Q 1 R 100+8", "D 10 R 100+8", "D 20 R 100+8", "C 30 R 100+8", "C 40 R 100+8"];
    let (requests, _) = matched(&events, Some(Action::Queue));
    assert_eq!(short(&requests), [(0, 100, Some(10), Some(20)), (1, 100, Some(19), Some(20))]);
    // After a merge as well.
    let events = ["Q 0 W 0+8", "Q 1 W 8+8", "Q 2 W 8+8", "D 10 W 0+16", "D 20 W 8+8", "C 30 W 0+16", "C 40 W 8+8"];
    let (requests, _) = matched(&events, Some(Action::Queue));
    let all = [(0, 0, Some(10), Some(20)), (1, 8, Some(9), Some(20)), (2, 8, Some(18), Some(20))];
    assert_eq!(short(&requests), all);
}

#[test]
fn a_split_request_is_matched_although_another_begins_inside_it() {
    let events = [
        "Q 0 R 0+256",
        "Q 1 R 64+8",
        "D 2 R 0+128",
        "D 3 R 128+128",
        "D 4 R 64+8",
        "C 10 R 0+128",
        "C 20 R 128+128",
        "C 30 R 64+8",
    ];
    let (requests, metadata) = matched(&events, Some(Action::Queue));
    assert_eq!(short(&requests), [(0, 0, Some(2), Some(18)), (1, 64, Some(3), Some(26))]);
    assert_eq!(metadata.counts.unmatched, 0);
    // Both parts of the split request have its queue time.
    let (requests, _) = matched(&events[..5], Some(Action::Issue));
    assert_eq!(requests.iter().map(|r| r.queued.map(|q| q.0)).collect::<Vec<_>>(), [Some(2), Some(3), Some(3)]);
}

#[test]
fn a_request_never_issued_does_not_match_a_much_later_issue() {
    let s = 1_000_000_000_i64;
    let events: Vec<String> =
        [("Q", 0), ("Q", 1000 * s), ("D", 1000 * s + 1), ("C", 1000 * s + 2), ("Q", 2000 * s), ("D", 2000 * s + 1)]
            .iter()
            .map(|(action, at)| format!("{action} {at} W 100+8"))
            .collect();
    let texts: Vec<&str> = events.iter().map(String::as_str).collect();
    let (requests, _) = matched(&texts, Some(Action::Issue));
    assert_eq!(requests.iter().map(|r| r.queued.map(|q| q.0)).collect::<Vec<_>>(), [Some(1), Some(1)]);
}

#[test]
fn a_zone_append_has_the_sector_of_its_completion() {
    let queued = ["Q 0 ZA 800+8", "Q 1 ZA 800+16", "Q 2 ZA 800+8", "Q 3 ZA 2000+8", "Q 4 W 808+8"];
    let issued = ["D 5 ZA 800+8", "D 6 ZA 800+16", "D 7 ZA 800+8", "D 8 ZA 2000+8", "D 9 W 808+8"];
    let completed = ["C 20 ZA 816+16", "C 30 ZA 832+8", "C 40 ZA 2000+8", "C 50 ZA 808+8", "C 60 W 808+8"];
    let all = [&queued[..], &issued, &completed].concat();
    let (requests, metadata) = matched(&all, Some(Action::Issue));
    let expected = [
        (5, 832, Some(5), Some(25)),
        (6, 816, Some(5), Some(14)),
        (7, 808, Some(5), Some(43)),
        (8, 2000, Some(5), Some(32)),
        (9, 808, Some(5), Some(51)),
    ];
    assert_eq!((short(&requests), metadata.counts.unmatched), (expected.to_vec(), 0));
    let (requests, metadata) = matched(&all, Some(Action::Queue));
    let sectors: Vec<u64> = requests.iter().map(|row| row.sector.0).collect();
    assert_eq!((sectors, metadata.counts.unmatched), (vec![832, 816, 808, 2000, 808], 0));
    // No zone before this completion has appends.
    let (requests, metadata) = matched(&["D 1 ZA 800+8", "C 2 ZA 792+8", "C 3 ZA 800+16"], None);
    assert_eq!((short(&requests), metadata.counts.unmatched), (vec![(1, 800, None, None)], 1));
}

#[test]
fn a_queueing_time_may_be_zero_and_needs_no_completion() {
    let (requests, _) = matched(&["Q 1 W 0+8", "D 1 W 0+8", "C 9 W 0+8", "Q 10 W 8+8", "D 12 W 8+8"], None);
    assert_eq!(short(&requests), [(1, 0, Some(0), Some(8)), (10, 8, Some(2), None)]);
}

#[test]
fn a_trace_without_completions_has_queueing_times() {
    let events = ["Q 1 W 0+8", "Q 2 FWS 0+0", "Q 3 W 8+8", "D 5 FF 0+0", "D 6 W 0+16", "Q 7 R 99+8", "D 9 R 99+8"];
    let (requests, metadata) = matched(&events, Some(Action::Queue));
    let all = [(1, 0, Some(5), None), (2, 0, Some(3), None), (3, 8, Some(3), None), (7, 99, Some(2), None)];
    assert_eq!((short(&requests), metadata.counts.unmatched), (all.to_vec(), 0));
}

#[test]
fn one_wrong_time_has_no_effect() {
    let wild = 99_999_999_000_000_000_i64;
    let events = ["Q 1 W 0+8", &format!("G {wild} W 900+8"), "C 9 W 0+8", "Q 10 W 8+8", "C 12 W 8+8"];
    let (requests, metadata) = matched(&events, Some(Action::Queue));
    assert_eq!(short(&requests), [(1, 0, None, Some(8)), (10, 8, None, Some(2))]);
    assert_eq!(metadata.counts.unmatched, 0);
}

/// A source that reports a lost event after its third event.
struct Lossy(Given, u32);

impl EventSource for Lossy {
    fn next(&mut self, metadata: &mut Metadata) -> Result<Option<Event>> {
        self.1 += 1;
        metadata.counts.lost_events = u64::from(self.1 > 3);
        self.0.next(metadata)
    }

    fn progress(&self) -> Option<f64> {
        None
    }
}

#[test]
fn a_lost_completion_is_not_replaced_by_the_next() {
    let events =
        ["Q 0 W 0+8", "D 1 W 0+8", "Q 50 W 0+8", "D 51 W 0+8", "C 52 W 0+8", "Q 90 W 0+8", "D 91 W 0+8", "C 92 W 0+8"];
    let events: Vec<Event> = events.iter().map(|text| event(text)).collect();
    let mut metadata = Metadata::new(Kind::Load, "given");
    let source = Lossy(Given(events.into_iter()), 0);
    let mut matcher = Matcher::new(source, Some(Action::Queue), &mut metadata).unwrap();
    let mut requests = Vec::new();
    while let Some(request) = matcher.next(&mut metadata).unwrap() {
        requests.push(request);
    }
    assert_eq!(short(&requests), [(0, 0, Some(1), None), (50, 0, Some(1), Some(1)), (90, 0, Some(1), Some(1))]);
    assert_eq!(metadata.counts.unmatched, 1);
}

/// Compares the matcher with a slow search, for requests that do not overlap and are not merged.
mod property {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn exact_matches_agree_with_a_search(
            lives in prop::collection::vec((0_i64..1000, 1_i64..300, 0_u64..10, any::<bool>(), any::<bool>()), 0..60),
        ) {
            let mut events = Vec::new();
            for &(at, latency, place, write, completes) in &lives {
                let rw = if write { "W" } else { "R" };
                events.push((at * 2, format!("Q {} {rw} {}+8", at * 2, place * 8)));
                if completes {
                    events.push((at * 2 + latency * 2 + 1, format!("C {} {rw} {}+8", at * 2 + latency * 2 + 1, place * 8)));
                }
            }
            events.sort_by_key(|(at, _)| *at);
            let texts: Vec<&str> = events.iter().map(|(_, text)| text.as_str()).collect();
            // Each completion goes to the oldest request of its place and direction that has none.
            let mut expected: Vec<(Event, Option<Nanos>)> = Vec::new();
            for event in texts.iter().map(|text| event(text)) {
                if event.action == Action::Queue {
                    expected.push((event, None));
                } else if let Some(open) = expected
                    .iter_mut()
                    .find(|(q, latency)| latency.is_none() && (q.op, q.sector) == (event.op, event.sector))
                {
                    open.1 = Some(event.at - open.0.at);
                }
            }
            let (requests, _) = matched(&texts, None);
            let got: Vec<_> = requests.iter().map(|r| (r.at, r.op, r.sector, r.latency)).collect();
            let expected: Vec<_> = expected.iter().map(|(q, latency)| (q.at, q.op, q.sector, *latency)).collect();
            prop_assert_eq!(got, expected);
        }
    }
}

#[test]
fn completions_without_a_request_are_counted_and_explained() {
    let explained = |events: &[&str]| {
        let (_, metadata) = matched(events, None);
        let warning = metadata.warnings.iter().find(|warning| warning.contains("to no request")).cloned();
        (metadata.counts.unmatched_completions, warning.unwrap_or_default())
    };
    // Requests that were in flight when the trace began.
    let (count, warning) = explained(&["C 10 R 0+8", "D 20 R 100+8", "C 90 R 100+8"]);
    assert!(
        count == 1 && warning.contains("1 completion belongs") && warning.ends_with("before it began"),
        "{warning}"
    );
    // All through the trace: the issues of a CPU are missing.
    let (count, warning) =
        explained(&["D 20 R 100+8", "C 30 R 100+8", "C 900 R 8+8", "D 920 R 100+8", "C 930 R 100+8", "C 940 W 0+8"]);
    assert!(count == 2 && warning.contains("probably not recorded"), "{warning}");
}

#[test]
fn completions_of_other_levels_than_the_requests_are_no_loss() {
    // The driver below issues without a bio of its own; a completion of no length follows a flush.
    let events =
        ["Q 1 W 0+8", "Q 2 W 50+8", "Q 3 W 90+8", "D 5 W 7000+16", "C 90 W 7000+8", "C 91 W 7008+8", "C 95 W 0+0"];
    let completions = ["C 99 W 0+8", "C 99 W 50+8", "C 99 W 90+8"];
    let (_, metadata) = matched(&[&events[..], &completions].concat(), None);
    assert_eq!((metadata.counts.unmatched_completions, metadata.counts.unmatched), (0, 0), "{:?}", metadata.warnings);
}
