//! Each kind against its law on ten million draws; `distributions` has the same on a hundred thousand.

mod fit;

const DRAWS: usize = 10_000_000;

#[test]
fn continuous_distributions_fit() {
    fit::continuous(DRAWS);
}

#[test]
fn zipf_distributions_fit() {
    fit::zipf(DRAWS);
}

#[test]
fn times_between_arrivals_fit() {
    fit::renewals(DRAWS);
}

#[test]
fn mean_rates_are_within_a_thousandth() {
    fit::rates(2 * DRAWS, 0.001);
}

#[test]
fn self_similar_arrivals_have_their_hurst_parameter() {
    fit::hurst(DRAWS, &[0.6, 0.7, 0.8, 0.9], 0.05);
}

#[test]
fn positions_fit() {
    fit::positions(DRAWS);
}

#[test]
fn sizes_and_operations_fit() {
    fit::sizes_and_operations(DRAWS);
}
