//! Events that do not make a request.

use super::*;

/// io_uring first tries without blocking, then again in a thread that may block.
#[test]
fn a_refused_request_is_left_out() {
    let events = ["Q 0 R 100+8", "E 1 R 100+8", "Q 50 R 100+8", "D 60 R 100+8", "C 90 R 100+8"];
    let (requests, metadata) = matched(&events, None);
    assert_eq!((short(&requests), metadata.counts.unmatched), (vec![(50, 100, Some(10), Some(30))], 0));
    assert!(metadata.warnings.iter().any(|warning| warning.ends_with("queued again: 1")), "{:?}", metadata.warnings);
    // The queue time is that of the second try.
    let (requests, _) = matched(&events, Some(Action::Issue));
    assert_eq!(short(&requests), [(60, 100, Some(10), Some(30))]);
}

#[test]
fn the_youngest_request_that_was_not_issued_is_refused() {
    let given = ["Q 0 R 100+8", "D 1 R 100+8", "Q 2 R 100+8", "Q 3 R 100+8", "Q 4 R 100+16", "E 5 R 100+8"];
    let later = ["D 6 R 100+8", "D 7 R 100+16", "C 10 R 100+8", "C 20 R 100+8", "C 30 R 100+16"];
    let (requests, _) = matched(&[&given[..], &later].concat(), Some(Action::Queue));
    let all = [(0, 100, Some(1), Some(9)), (2, 100, Some(4), Some(14)), (4, 100, Some(3), Some(23))];
    assert_eq!(short(&requests), all);
    // Devices that handle bios have no D.
    let (requests, metadata) = matched(&["Q 0 R 100+8", "Q 2 R 100+8", "E 3 R 100+8", "C 9 R 100+8"], None);
    assert_eq!((short(&requests), metadata.counts.unmatched), (vec![(0, 100, None, Some(9))], 0));
}

#[test]
fn an_issued_request_that_the_device_failed_is_kept() {
    let events = ["Q 0 R 100+8", "D 1 R 100+8", "E 9 R 100+8", "Q 20 R 0+8", "D 21 R 0+8", "C 22 R 0+8"];
    for action in [Action::Queue, Action::Issue] {
        let (requests, metadata) = matched(&events, Some(action));
        assert_eq!((requests.len(), requests[0].latency), (2, Some(Nanos(8))));
        assert!(!metadata.warnings.iter().any(|warning| warning.contains("refused")), "{:?}", metadata.warnings);
    }
}

/// As in Linux 4.3 to 4.11.
#[test]
fn the_rest_of_a_split_request_is_left_out() {
    let queued = ["Q 0 R 0+3072", "X 1 R 1024+1", "Q 2 R 1024+2048", "X 3 R 2048+1", "C 3 W 77+8", "Q 4 R 2048+1024"];
    let issued = ["D 5 R 0+1024", "D 6 R 1024+1024", "D 7 R 2048+1024"];
    let completed = ["C 10 R 0+1024", "C 20 R 1024+1024", "C 30 R 2048+1024", "Q 40 R 1024+2048", "Q 50 R 9+8"];
    let all = [&queued[..], &issued, &completed].concat();
    let (requests, metadata) = matched(&all, Some(Action::Queue));
    // A later request with the same extent is not a rest.
    let expected = [(0, 0, Some(5), Some(25)), (40, 1024, None, None), (50, 9, None, None)];
    assert_eq!((short(&requests), metadata.counts.unmatched), (expected.to_vec(), 2));
    let (requests, _) = matched(&all, Some(Action::Issue));
    assert_eq!(requests.iter().map(|row| row.queued.unwrap().0).collect::<Vec<_>>(), [5, 6, 7]);
}

#[test]
fn the_sector_of_a_rest_is_compared_in_32_bits() {
    let events = ["Q 0 R 10000000000+2048", "X 1 R 1410066432+1", "Q 2 R 10000001024+1024", "C 9 R 10000000000+2048"];
    assert_eq!(matched(&events, None).0.len(), 1);
}

#[test]
fn other_requests_after_a_split_are_kept() {
    let sectors = |later: &[&str]| {
        let events = [&["Q 0 R 0+2048", "X 1 R 1024+1"][..], later, &["C 9 R 77+8"]].concat();
        matched(&events, None).0.iter().map(|row| row.sectors.0).collect::<Vec<_>>()
    };
    assert_eq!(sectors(&["Q 3 R 1024+1024"]), [2048]);
    // The process continues with the first part.
    assert_eq!(sectors(&["G 2 R 0+1024", "Q 3 R 1024+1024"]), [2048, 1024]);
    // The next request ends elsewhere, or is of another operation.
    assert_eq!(sectors(&["Q 3 R 1024+2048"]), [2048, 2048]);
    assert_eq!(sectors(&["Q 3 W 1024+1024"]), [2048, 1024]);
}
