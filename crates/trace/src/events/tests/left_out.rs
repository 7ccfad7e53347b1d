//! What looks like a request and is none by itself.

use super::*;

/// As of io_uring, which asks again in a thread that may wait.
#[test]
fn a_refused_request_is_none() {
    let events = ["Q 0 R 100+8", "E 1 R 100+8", "Q 50 R 100+8", "D 60 R 100+8", "C 90 R 100+8"];
    let (requests, about) = matched(&events, None);
    assert_eq!((short(&requests), about.counts.unmatched), (vec![(50, 100, Some(10), Some(30))], 0));
    assert!(about.notices.iter().any(|said| said.ends_with("asked for again: 1")), "{:?}", about.notices);
    // The second time is when it was asked for.
    let (requests, _) = matched(&events, Some(Action::Issue));
    assert_eq!(short(&requests), [(60, 100, Some(10), Some(30))]);
}

#[test]
fn what_was_refused_is_the_youngest_there_that_was_not_issued() {
    let given = ["Q 0 R 100+8", "D 1 R 100+8", "Q 2 R 100+8", "Q 3 R 100+8", "Q 4 R 100+16", "E 5 R 100+8"];
    let later = ["D 6 R 100+8", "D 7 R 100+16", "C 10 R 100+8", "C 20 R 100+8", "C 30 R 100+16"];
    let (requests, _) = matched(&[&given[..], &later].concat(), Some(Action::Queue));
    let all = [(0, 100, Some(1), Some(9)), (2, 100, Some(4), Some(14)), (4, 100, Some(3), Some(23))];
    assert_eq!(short(&requests), all);
    // What has no requests has no D.
    let (requests, about) = matched(&["Q 0 R 100+8", "Q 2 R 100+8", "E 3 R 100+8", "C 9 R 100+8"], None);
    assert_eq!((short(&requests), about.counts.unmatched), (vec![(0, 100, None, Some(9))], 0));
}

#[test]
fn what_the_device_failed_is_a_request() {
    let events = ["Q 0 R 100+8", "D 1 R 100+8", "E 9 R 100+8", "Q 20 R 0+8", "D 21 R 0+8", "C 22 R 0+8"];
    for action in [Action::Queue, Action::Issue] {
        let (requests, about) = matched(&events, Some(action));
        assert_eq!((requests.len(), requests[0].latency), (2, Some(Nanos(8))));
        assert!(!about.notices.iter().any(|said| said.contains("refused")), "{:?}", about.notices);
    }
}

/// As of Linux 4.3 to 4.11.
#[test]
fn the_rest_of_a_split_request_is_none() {
    let asked = ["Q 0 R 0+3072", "X 1 R 1024+1", "Q 2 R 1024+2048", "X 3 R 2048+1", "C 3 W 77+8", "Q 4 R 2048+1024"];
    let issued = ["D 5 R 0+1024", "D 6 R 1024+1024", "D 7 R 2048+1024"];
    let completed = ["C 10 R 0+1024", "C 20 R 1024+1024", "C 30 R 2048+1024", "Q 40 R 1024+2048", "Q 50 R 9+8"];
    let all = [&asked[..], &issued, &completed].concat();
    let (requests, about) = matched(&all, Some(Action::Queue));
    // What is asked for later is no rest.
    let expected = [(0, 0, Some(5), Some(25)), (40, 1024, None, None), (50, 9, None, None)];
    assert_eq!((short(&requests), about.counts.unmatched), (expected.to_vec(), 2));
    let (requests, _) = matched(&all, Some(Action::Issue));
    assert_eq!(requests.iter().map(|row| row.queued.unwrap().0).collect::<Vec<_>>(), [5, 6, 7]);
}

#[test]
fn of_the_place_of_a_rest_the_kernel_tells_32_bits() {
    let events = ["Q 0 R 10000000000+2048", "X 1 R 1410066432+1", "Q 2 R 10000001024+1024", "C 9 R 10000000000+2048"];
    assert_eq!(matched(&events, None).0.len(), 1);
}

#[test]
fn later_kernels_tell_of_no_rest() {
    let sectors = |later: &[&str]| {
        let events = [&["Q 0 R 0+2048", "X 1 R 1024+1"][..], later, &["C 9 R 77+8"]].concat();
        matched(&events, None).0.iter().map(|row| row.sectors.0).collect::<Vec<_>>()
    };
    assert_eq!(sectors(&["Q 3 R 1024+1024"]), [2048]);
    // It goes on with the first part.
    assert_eq!(sectors(&["G 2 R 0+1024", "Q 3 R 1024+1024"]), [2048, 1024]);
    // What is next ends elsewhere.
    assert_eq!(sectors(&["Q 3 R 1024+2048"]), [2048, 2048]);
    assert_eq!(sectors(&["Q 3 W 1024+1024"]), [2048, 1024]);
}
