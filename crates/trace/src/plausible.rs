//! Whether a trace can be what it was taken for: a wrong unit of time or length shows in its extent.

use crate::metadata::Metadata;

const SECOND: f64 = 1e9;
const YEAR: f64 = 365.25 * 86_400.0 * SECOND;

/// Traces last hours to months.
const MAX_DURATION: f64 = 10.0 * YEAR;
/// More than any device or array of today does, by far.
const MAX_RATE: f64 = 30e6;
/// Rates and gaps of fewer requests tell nothing.
const MIN_REQUESTS: u64 = 1000;
/// From 1990 on, before which nobody traced, until 2100, in nanoseconds.
const EPOCHS: std::ops::Range<i64> = 631_152_000_000_000_000..4_102_444_800_000_000_000;
/// 1 GiB.
const MAX_SECTORS: u64 = 1 << 21;
/// 128 PiB.
const MAX_END_SECTOR: u64 = 1 << 48;

/// What makes the trace doubtful, one sentence each, once all of it was read.
pub fn questions(metadata: &Metadata) -> Vec<String> {
    let (span, counts) = (&metadata.span, &metadata.counts);
    let mut questions = Vec::new();
    let duration = span.last_ns.saturating_sub(span.first_ns) as f64;
    if duration > MAX_DURATION {
        let years = duration / YEAR;
        questions.push(format!(
            "the trace would last {years:.0} years: are its times in another unit, or some of them damaged?"
        ));
    }
    let rate = counts.requests as f64 / (duration / SECOND);
    if counts.requests >= MIN_REQUESTS && rate > MAX_RATE {
        let (requests, ms) = (counts.requests, duration / 1e6);
        questions.push(format!("{requests} requests would take {ms:.3} ms: are its times in another unit?"));
    }
    if let Some(epoch) = metadata.epoch_unix_ns.filter(|epoch| !EPOCHS.contains(epoch)) {
        let year = 1970.0 + epoch as f64 / YEAR;
        questions.push(format!("the trace would begin in the year {year:.0}: are its times in another unit?"));
    }
    // Discards may be that long; the table keeps only the longest of all.
    if span.max_sectors > MAX_SECTORS && counts.others == 0 {
        let gib = span.max_sectors as f64 / MAX_SECTORS as f64;
        questions.push(format!("the longest request would have {gib:.1} GiB: are its lengths in another unit?"));
    }
    if span.max_end_sector > MAX_END_SECTOR {
        let pib = span.max_end_sector as f64 / (1_u64 << 41) as f64;
        questions.push(format!("the device would have {pib:.0} PiB or more: are its positions in another unit?"));
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Kind;

    fn asked(requests: u64, last_ns: i64, epoch: Option<i64>, sectors: u64, end: u64) -> Vec<String> {
        let mut metadata = Metadata::new(Kind::Load, "x");
        metadata.counts.requests = requests;
        metadata.span.last_ns = last_ns;
        metadata.epoch_unix_ns = epoch;
        (metadata.span.max_sectors, metadata.span.max_end_sector) = (sectors, end);
        questions(&metadata)
    }

    #[test]
    fn what_is_possible_is_not_questioned() {
        assert_eq!(asked(1_000_000, 3_600_000_000_000, Some(1_336_140_000_000_000_000), 2048, 1 << 35), [""; 0]);
        assert_eq!(asked(5, 10, None, 8, 8), [""; 0]);
    }

    #[test]
    fn what_is_not_possible_is() {
        assert!(asked(10, (250.0 * YEAR) as i64, None, 8, 8)[0].contains("years"));
        assert!(asked(1_000_000, 3_000_000, None, 8, 8)[0].contains("3.000 ms"));
        assert!(asked(1_000_000, 0, None, 8, 8)[0].contains("0.000 ms"));
        assert!(asked(10, 10, Some(0), 8, 8)[0].contains("1970"));
        assert!(asked(10, 10, None, 1 << 22, 1 << 50).len() == 2);
    }
}
