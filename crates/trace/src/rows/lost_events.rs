//! Reports of lost events between the rows: recorders print them on standard error, which often ends in the same file.

use super::words;
use crate::text::number::whole;

/// The number of events that a line reports as lost; `None` if it is no such report. Recorders write, among others:
///
/// ```text
/// Possibly lost 1024 samples                     bcc
/// lost 12 events on CPU #0                       libbpf-tools
/// Lost 17 events; WARNING: Lost 17 events        bpftrace
/// CPU:3 [LOST 17 EVENTS], CPU:3 [LOST EVENTS]    the kernel's ring of ftrace
/// CPU:3 [17 EVENTS DROPPED]                      trace-cmd
/// Processed 90 events and lost 2 chunks!         perf
/// You have 1234 ( 1.2%) dropped events           blktrace
/// ```
///
/// Without a number it is one event, the least that was lost.
pub fn lost_events(line: &[u8]) -> Option<u64> {
    // Reports are short; a long line is damage.
    if line.len() > 200 {
        return None;
    }
    let lower = line.to_ascii_lowercase();
    let is_mark = |byte: &u8| b"[](),:;!".contains(byte);
    let bare = |word: &'_ [u8]| {
        let begin = word.iter().position(|byte| !is_mark(byte))?;
        let end = word.iter().rposition(|byte| !is_mark(byte))?;
        Some(begin..=end)
    };
    let words: Vec<&[u8]> = words(&lower).filter_map(|word| bare(word).map(|range| &word[range])).collect();
    let is_noun = |word: &[u8]| {
        let nouns: [&[u8]; 4] = [b"event", b"sample", b"chunk", b"record"];
        nouns.contains(&word.strip_suffix(b"s").unwrap_or(word))
    };
    let lost = words.iter().position(|&word| matches!(word, b"lost" | b"dropped"))?;
    let number = |at: Option<usize>| at.and_then(|at| words.get(at)).and_then(|word| whole(word).ok());
    let noun = |at: Option<usize>| at.and_then(|at| words.get(at)).is_some_and(|word| is_noun(word));
    let (next, after) = (Some(lost + 1), Some(lost + 2));
    match number(next) {
        // lost 17 events
        Some(count) => noun(after).then_some(count),
        // 17 events dropped
        None if noun(lost.checked_sub(1)) => Some(number(lost.checked_sub(2)).unwrap_or(1)),
        // dropped events: 17; 17 (1.2%) dropped events; [LOST EVENTS]
        None if noun(next) => {
            let before = (1..=3).find_map(|back| number(lost.checked_sub(back)));
            let only = words.len() <= 4 && lower.ends_with(b"]");
            number(after).or(before).or(only.then_some(1))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_recorders_have_the_number_of_lost_events() {
        for (line, count) in [
            ("Possibly lost 1024 samples", 1024),
            ("lost 12 events on CPU #0", 12),
            ("Lost 17 events", 17),
            ("WARNING: Lost 17 events", 17),
            ("CPU:3 [LOST 17 EVENTS]", 17),
            ("CPU:3 [LOST EVENTS]", 1),
            ("CPU:3 [17 EVENTS DROPPED]", 17),
            ("CPU:3 [EVENTS DROPPED]", 1),
            ("Processed 90 events and lost 2 chunks!", 2),
            ("You have 1234 ( 1.2%) dropped events", 1234),
            ("dropped events: 3", 3),
            ("Lost Events: 0", 0),
        ] {
            assert_eq!(lost_events(line.as_bytes()), Some(count), "{line}");
        }
    }

    #[test]
    fn other_lines_report_no_loss() {
        for line in
            ["", "lost", "lost+found 12", "Tracing block device I/O... Hit Ctrl-C to end.", "no events", "1 lost"]
        {
            assert_eq!(lost_events(line.as_bytes()), None, "{line}");
        }
    }
}
