//! A million descriptors and threads, and names of 4 GiB; `files_hostile` has fewer.

use crate::hostile;

#[test]
fn a_million_descriptors_that_are_closed_at_once_take_no_quadratic_time() {
    hostile::many_descriptors(1_000_000);
}

#[test]
fn many_threads_in_flight_take_no_quadratic_time() {
    hostile::many_threads_in_flight(300_000);
}

#[test]
fn a_million_threads_of_unknown_origin_are_searched_for_a_limited_time() {
    hostile::many_threads_of_unknown_origin(1_000_000);
}

#[test]
fn a_million_threads_that_take_over_the_number_of_others_take_no_quadratic_time() {
    hostile::threads_that_take_over_numbers(1_000_000);
}

#[test]
fn a_name_of_4_gib_takes_no_memory() {
    hostile::endless_name(4096);
}
