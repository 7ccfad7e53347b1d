//! A thousand sequences that the orders allow reproduce the results of random programs.

#[path = "../../files/tests/orders/mod.rs"]
mod orders;

use iosonar_files::order::Policy;
use orders::Recorded;

#[test]
fn a_thousand_sequences_that_resource_allows_reproduce_the_results() {
    for seed in 1000..1100 {
        let recorded = Recorded::new(seed, 120);
        recorded.check_in_order().unwrap_or_else(|difference| panic!("{difference}"));
        recorded.check(Policy::Resource, 10).unwrap_or_else(|difference| panic!("{difference}"));
    }
}
