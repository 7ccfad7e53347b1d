//! Whether a trace can be what it was taken for: a wrong unit of time or length shows in its extent.

use crate::model::metadata::Metadata;
use crate::model::units::SECTOR_BYTES;
use crate::text::human;

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
        let years = human::count((duration / YEAR).round() as u64);
        questions.push(format!(
            "the trace would last {years} years: are its times in another unit, or some of them damaged?"
        ));
    }
    let rate = counts.requests as f64 / (duration / SECOND);
    if counts.requests >= MIN_REQUESTS && rate > MAX_RATE {
        let (requests, time) = (human::count(counts.requests), human::span(duration / SECOND));
        questions.push(format!("{requests} requests would take {time}: are its times in another unit?"));
    }
    if let Some(epoch) = metadata.epoch_unix_ns.filter(|epoch| !EPOCHS.contains(epoch)) {
        let year = 1970 + (epoch as f64 / YEAR).floor() as i64;
        questions.push(format!("the trace would begin in the year {year}: are its times in another unit?"));
    }
    // Discards may be that long; the table keeps only the longest of all.
    if span.max_sectors > MAX_SECTORS && counts.others == 0 {
        let size = human::block(span.max_sectors.saturating_mul(SECTOR_BYTES));
        questions.push(format!("the longest request would have {size}: are its lengths in another unit?"));
    }
    if span.max_end_sector > MAX_END_SECTOR {
        let size = human::block(span.max_end_sector.saturating_mul(SECTOR_BYTES));
        questions.push(format!("the device would have {size} or more: are its positions in another unit?"));
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::metadata::Kind;

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
        assert!(asked(1_000_000, 3_000_000, None, 8, 8)[0].contains("1,000,000 requests would take 3 ms:"));
        assert!(asked(1_000_000, 0, None, 8, 8)[0].contains("would take 0 s:"));
        assert!(asked(10, 10, Some(0), 8, 8)[0].contains("1970"));
        let both = asked(10, 10, None, 1 << 22, 1 << 50);
        assert!(both.len() == 2 && both[0].contains("2 GiB") && both[1].contains("512 PiB"), "{both:?}");
    }
}
