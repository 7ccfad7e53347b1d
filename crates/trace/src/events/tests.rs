//! Events in, requests out.

use super::*;
use crate::metadata::Kind;

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
    let (op, flags) = crate::rwbs::parse(rwbs.as_bytes(), sectors).unwrap();
    Event {
        at: Nanos(at.parse().unwrap()),
        action: if action == "C" {
            Action::Complete
        } else {
            Action::from_letter(action.chars().next().unwrap()).unwrap()
        },
        device: DeviceId(0),
        sector: Sector(sector.parse().unwrap()),
        sectors: Sectors(sectors),
        op,
        flags,
        pid: None,
        comm: Comm::default(),
    }
}

fn matched(events: &[&str], action: Option<Action>) -> (Vec<Request>, Metadata) {
    let events: Vec<Event> = events.iter().map(|text| event(text)).collect();
    let mut about = Metadata::new(Kind::Load, "given");
    let mut matcher = Matcher::new(Given(events.into_iter()), action, &mut about).unwrap();
    let mut requests = Vec::new();
    while let Some(request) = matcher.next(&mut about).unwrap() {
        requests.push(request);
    }
    (requests, about)
}

/// When, where, queued, latency.
fn short(requests: &[Request]) -> Vec<(i64, u64, Option<i64>, Option<i64>)> {
    requests.iter().map(|r| (r.at.0, r.sector.0, r.queued.map(|t| t.0), r.latency.map(|t| t.0))).collect()
}

#[test]
fn a_request_has_its_times() {
    let events = [
        "Q 10 R 100+8",
        "G 11 R 100+8",
        "I 12 R 100+8",
        "D 15 R 100+8",
        "Q 16 W 100+8",
        "C 40 R 100+8",
        "C 50 W 100+8",
    ];
    let (requests, about) = matched(&events, None);
    assert_eq!(short(&requests), [(10, 100, Some(5), Some(25)), (16, 100, None, Some(34))]);
    assert_eq!(about.counts.unmatched, 0);
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
    let (requests, about) = matched(
        &["Q 1 W 0+8", "Q 2 W 8+8", "Q 3 W 16+8", "Q 4 W 100+8", "D 10 W 0+24", "C 20 W 0+24", "C 30 W 100+8"],
        None,
    );
    assert_eq!(
        short(&requests),
        [(1, 0, Some(9), Some(10)), (2, 8, Some(8), Some(10)), (3, 16, Some(7), Some(10)), (4, 100, None, Some(26))]
    );
    assert_eq!(about.counts.unmatched, 0);
}

#[test]
fn a_merged_request_was_asked_for_when_its_first_part_was() {
    let (requests, _) = matched(&["Q 1 W 8+8", "Q 2 W 0+8", "D 10 W 0+16", "C 20 W 0+16"], Some(Action::Issue));
    assert_eq!(short(&requests), [(10, 0, Some(9), Some(10))]);
}

#[test]
fn a_split_request_completes_with_its_last_part() {
    let (requests, about) = matched(
        &["Q 1 R 0+16", "D 2 R 0+8", "D 3 R 8+8", "C 10 R 8+8", "C 20 R 0+8", "Q 30 R 0+16"],
        Some(Action::Queue),
    );
    assert_eq!(short(&requests), [(1, 0, Some(1), Some(18)), (30, 0, None, None)]);
    assert_eq!(about.counts.unmatched, 1);
}

#[test]
fn of_equal_requests_the_oldest_completes_first() {
    let (requests, _) = matched(&["Q 1 R 0+8", "Q 2 R 0+8", "C 10 R 0+8", "C 30 R 0+8"], None);
    assert_eq!(short(&requests), [(1, 0, None, Some(9)), (2, 0, None, Some(28))]);
    let (requests, _) = matched(&["Q 1 R 0+8", "Q 2 R 0+16", "C 10 R 0+16", "C 30 R 0+8"], None);
    assert_eq!(short(&requests), [(1, 0, None, Some(29)), (2, 0, None, Some(8))]);
}

#[test]
fn directions_and_devices_are_told_apart() {
    let (requests, about) = matched(&["Q 1 R 0+8", "C 5 W 0+8", "C 9 R 0+8"], None);
    assert_eq!(short(&requests), [(1, 0, None, Some(8))]);
    assert_eq!(about.counts.unmatched, 0);
}

#[test]
fn a_flush_needs_no_place() {
    let (requests, _) = matched(&["Q 1 FWS 77+0", "D 2 FF 0+0", "C 9 FF 18446744073709551615+0"], None);
    assert_eq!(short(&requests), [(1, 77, Some(1), Some(7))]);
    assert_eq!(requests[0].op, Op::Flush);
}

#[test]
fn a_completion_of_nothing_completes_nothing_else() {
    let (requests, _) = matched(&["Q 1 WS 0+8", "D 2 WS 0+0", "C 3 WS 0+0", "C 9 WS 0+8"], None);
    assert_eq!(short(&requests), [(1, 0, None, Some(8))]);
}

#[test]
fn requests_that_never_complete_do_not_pile_up() {
    let mut events = vec!["Q 0 R 0+8".to_owned()];
    let seconds = 1_000_000_000_i64;
    for i in 1..1000 {
        events.push(format!("Q {} R {}+8", i * seconds, i * 8));
        events.push(format!("C {} R {}+8", i * seconds + 5, i * 8));
    }
    let texts: Vec<&str> = events.iter().map(String::as_str).collect();
    let (requests, about) = matched(&texts, None);
    assert_eq!(requests.len(), 1000);
    assert_eq!(about.counts.unmatched, 1);
    assert!(requests.iter().skip(1).all(|r| r.latency == Some(Nanos(5))));
}

/// What the matcher must do with requests that neither overlap nor are merged, done slowly.
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
