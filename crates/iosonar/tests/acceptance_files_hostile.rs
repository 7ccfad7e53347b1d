//! A million descriptors and threads, and names of 4 GiB; `files_hostile` has fewer.

use crate::hostile;

#[test]
fn closing_a_million_descriptors_takes_no_quadratic_time() {
    hostile::many_descriptors(1_000_000);
}

#[test]
fn many_threads_in_flight_take_no_quadratic_time() {
    hostile::many_threads_in_flight(300_000);
}

#[test]
fn origins_of_a_million_threads_take_a_limited_search() {
    hostile::many_threads_of_unknown_origin(1_000_000);
}

#[test]
fn a_million_reused_thread_ids_take_no_quadratic_time() {
    hostile::threads_that_take_over_numbers(1_000_000);
}

#[test]
fn a_name_of_4_gib_takes_no_memory() {
    hostile::endless_name(4096);
}
