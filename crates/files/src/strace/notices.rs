//! Sentences about what a file lacks.

use iosonar_trace::text::human::{agreed, count, counted};

use super::clock::{Clock, Kind};
use super::names::Names;
use super::oddities::Oddities;
use crate::Metadata;

/// Adds the notices about a whole file.
pub fn add(metadata: &mut Metadata, oddities: &Oddities, names: &Names, times: Kind, clock: &Clock) {
    let mut notices = Vec::new();
    match times {
        Kind::Unix => {}
        Kind::OfDay => notices.push("the file has times of the day only: the date is unknown; record with -ttt".to_owned()),
        Kind::None => notices.push(
            "the file has no times: each line begins 1 µs after the one before; record with -ttt to replay at the original \
             times"
                .to_owned(),
        ),
    }
    if oddities.without_duration > 0 {
        notices.push(agreed(oddities.without_duration, "calls have no duration: 0 is assumed; record with -T"));
    }
    if clock.steps_back > 0 {
        notices.push(format!(
            "the clock went back {}, by {} in total; later times are moved by as much",
            counted(clock.steps_back, "time"),
            clock.stepped_back
        ));
    }
    if oddities.interrupted > 0 {
        notices.push(format!(
            "{} did not return: a signal or the end of the thread interrupted them",
            counted(oddities.interrupted, "call")
        ));
    }
    if oddities.pairs_without_descriptors > 0 {
        notices.push(format!(
            "{} pipes and socket pairs have unknown descriptors: -s 0 hides them unless -e abbrev='!pipe,pipe2,socketpair' is \
             given",
            count(oddities.pairs_without_descriptors)
        ));
    }
    if oddities.vectors_without_length > 0 {
        notices.push(format!(
            "{} vectored reads and writes have an unknown length: what they moved is assumed; -s 0 hides it unless -e \
             abbrev='!readv,writev,…' is given",
            count(oddities.vectors_without_length)
        ));
    }
    let beside = [
        (oddities.frames, "stack frame", "of strace -k"),
        (oddities.totals, "line", "of a table of totals (strace -C)"),
    ];
    for (number, what, of) in beside.into_iter().filter(|(number, ..)| *number > 0) {
        notices.push(format!("{} {of}: left out", counted(number, what)));
    }
    if oddities.coloured > 0 {
        notices.push(format!(
            "{} had colours (strace --color), which were taken away",
            counted(oddities.coloured, "line")
        ));
    }
    if oddities.personalities > 0 {
        notices.push("some processes are of 32 bits: their calls have other names in part".to_owned());
    }
    if oddities.given_up > 0 {
        notices.push(format!(
            "{} count as not returned: too many were unfinished at the same time",
            counted(oddities.given_up, "call")
        ));
    }
    if names.cut_paths > 0 {
        notices.push(format!("{} cut off by strace: unknown", counted(names.cut_paths, "path")));
    }
    if !names.unknown_flags.is_empty() {
        let names: Vec<&str> = names.unknown_flags.keys().map(String::as_str).collect();
        notices.push(format!("flags without a known value were left out: {}", names.join(", ")));
    }
    if metadata.counts.bad_lines > 0 {
        notices.push(agreed(metadata.counts.bad_lines, "lines were not understood"));
    }
    metadata.notices.append(&mut notices);
}
