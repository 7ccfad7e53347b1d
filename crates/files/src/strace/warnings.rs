//! Sentences about what a file lacks.

use iosonar_trace::text::human::{agreed, count, counted};

use super::clock::{Clock, Kind};
use super::line_counts::LineCounts;
use super::names::Names;
use crate::Metadata;

/// Adds the warnings about a whole file.
pub fn add(metadata: &mut Metadata, line_counts: &LineCounts, names: &Names, times: Kind, clock: &Clock) {
    let mut warnings = Vec::new();
    match times {
        Kind::Unix => {}
        Kind::OfDay => warnings.push("the file has times of the day only: the date is unknown; record with -ttt".to_owned()),
        Kind::None => warnings.push(
            "the file has no times: each line begins 1 µs after the one before; record with -ttt to replay at the original \
             times"
                .to_owned(),
        ),
    }
    if line_counts.without_duration > 0 {
        warnings.push(agreed(line_counts.without_duration, "calls have no duration: 0 is assumed; record with -T"));
    }
    if clock.steps_back > 0 {
        warnings.push(format!(
            "the clock went back {}, by {} in total; later times are moved by as much",
            counted(clock.steps_back, "time"),
            clock.stepped_back
        ));
    }
    if line_counts.interrupted > 0 {
        warnings.push(format!(
            "{} did not return: a signal or the end of the thread interrupted them",
            counted(line_counts.interrupted, "call")
        ));
    }
    if line_counts.pairs_without_descriptors > 0 {
        warnings.push(format!(
            "{} pipes and socket pairs have unknown descriptors: -s 0 hides them unless -e abbrev='!pipe,pipe2,socketpair' is \
             given",
            count(line_counts.pairs_without_descriptors)
        ));
    }
    if line_counts.vectors_without_length > 0 {
        warnings.push(format!(
            "{} vectored reads and writes have an unknown length: what they moved is assumed; -s 0 hides it unless -e \
             abbrev='!readv,writev,…' is given",
            count(line_counts.vectors_without_length)
        ));
    }
    let beside = [
        (line_counts.frames, "stack frame", "of strace -k"),
        (line_counts.totals, "line", "of a table of totals (strace -C)"),
    ];
    for (number, what, of) in beside.into_iter().filter(|(number, ..)| *number > 0) {
        warnings.push(format!("{} {of}: left out", counted(number, what)));
    }
    if line_counts.coloured > 0 {
        warnings.push(format!(
            "{} had colours (strace --color), which were taken away",
            counted(line_counts.coloured, "line")
        ));
    }
    if line_counts.personalities > 0 {
        warnings.push("some processes are of 32 bits: their calls have other names in part".to_owned());
    }
    if line_counts.given_up > 0 {
        warnings.push(format!(
            "{} count as not returned: too many were unfinished at the same time",
            counted(line_counts.given_up, "call")
        ));
    }
    if names.cut_paths > 0 {
        warnings.push(format!("{} cut off by strace: unknown", counted(names.cut_paths, "path")));
    }
    if !names.unknown_flags.is_empty() {
        let names: Vec<&str> = names.unknown_flags.keys().map(String::as_str).collect();
        warnings.push(format!("flags without a known value were left out: {}", names.join(", ")));
    }
    if metadata.counts.bad_lines > 0 {
        warnings.push(agreed(metadata.counts.bad_lines, "lines were not understood"));
    }
    metadata.warnings.append(&mut warnings);
}
