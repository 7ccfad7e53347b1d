//! Every sequence that an order allows reproduces the results of random programs.

#[path = "orders/mod.rs"]
mod orders;

use iosonar_files::order::Policy;
use orders::Recorded;

#[test]
fn every_sequence_that_resource_allows_reproduces_the_results() {
    for seed in 0..20 {
        let recorded = Recorded::new(seed, 80);
        recorded.check_in_order().unwrap_or_else(|difference| panic!("{difference}"));
        recorded.check(Policy::Resource, 2).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

#[test]
fn each_sequence_conservative_allows_reproduces_the_results() {
    let mut reorderable = 0;
    for seed in 0..4 {
        let recorded = Recorded::new(seed, 60).with_overlaps();
        recorded.check(Policy::Conservative, 10).unwrap_or_else(|difference| panic!("{difference}"));
        reorderable += recorded.reorderable(Policy::Conservative);
    }
    assert!(reorderable > 20, "{reorderable}");
}
