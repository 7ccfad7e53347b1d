//! Every sequence that an order allows reproduces the results of random programs.

#[path = "orders/mod.rs"]
mod orders;

use iosonar_files::order::Policy;
use orders::Recorded;

#[test]
fn every_sequence_that_an_order_allows_reproduces_the_results() {
    for seed in 0..20 {
        let recorded = Recorded::new(seed, 80);
        recorded.check_in_order().unwrap_or_else(|difference| panic!("{difference}"));
        recorded.check(Policy::Resource, 2).unwrap_or_else(|difference| panic!("{difference}"));
    }
}
