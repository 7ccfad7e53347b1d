//! A thousand sequences that the orders allow reproduce the results of random programs.

use crate::orders;
use iosonar_files::order::Policy;
use orders::Recorded;

#[test]
fn a_thousand_sequences_of_resource_reproduce_the_results() {
    for seed in 1000..1100 {
        let recorded = Recorded::new(seed, 120);
        recorded.check_in_order().unwrap_or_else(|difference| panic!("{difference}"));
        recorded.check(Policy::Resource, 10).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

#[test]
fn a_thousand_sequences_of_conservative_reproduce_the_results() {
    let mut reorderable = 0;
    for seed in 1000..1050 {
        let recorded = Recorded::new(seed, 120).with_overlaps();
        recorded.check(Policy::Conservative, 20).unwrap_or_else(|difference| panic!("{difference}"));
        reorderable += recorded.reorderable(Policy::Conservative);
    }
    assert!(reorderable > 500, "{reorderable}");
}

#[test]
fn the_sequence_of_the_threads_alone_does_not_reproduce_them() {
    let differing = (1000..1020).filter(|&seed| Recorded::new(seed, 120).check(Policy::Thread, 2).is_err()).count();
    assert!(differing >= 15, "{differing} of 20");
}
