//! Plausibility of a trace: wrong units of time or length show in its extent.

use crate::model::metadata::Metadata;
use crate::model::units::SECTOR_BYTES;
use crate::text::human;

const SECOND: f64 = 1e9;
const YEAR: f64 = 365.25 * 86_400.0 * SECOND;

/// Traces last hours to months.
const MAX_DURATION: f64 = 10.0 * YEAR;
/// Requests per second; far more than today's devices and arrays do.
const MAX_RATE: f64 = 30e6;
/// The rate of fewer requests has no meaning.
const MIN_REQUESTS: u64 = 1000;
/// From 1990, before which there are no traces, until 2100, in nanoseconds.
const EPOCHS: std::ops::Range<i64> = 631_152_000_000_000_000..4_102_444_800_000_000_000;
/// 1 GiB.
const MAX_SECTORS: u64 = 1 << 21;
/// 128 PiB.
const MAX_END_SECTOR: u64 = 1 << 48;

/// Warnings about implausible values, one sentence each. Expects the metadata after all rows were read.
pub fn plausibility_warnings(metadata: &Metadata) -> Vec<String> {
    let (span, counts) = (&metadata.span, &metadata.counts);
    let mut warnings = Vec::new();
    let duration = span.last_ns.saturating_sub(span.first_ns) as f64;
    if duration > MAX_DURATION {
        let years = human::count((duration / YEAR).round() as u64);
        warnings.push(format!(
            "the trace would last {years} years: are its times in another unit, or some of them damaged?"
        ));
    }
    let rate = counts.requests as f64 / (duration / SECOND);
    if counts.requests >= MIN_REQUESTS && rate > MAX_RATE {
        let (requests, time) = (human::count(counts.requests), human::span(duration / SECOND));
        warnings.push(format!("{requests} requests would take {time}: are its times in another unit?"));
    }
    if let Some(epoch) = metadata.epoch_unix_ns.filter(|epoch| !EPOCHS.contains(epoch)) {
        let year = 1970 + (epoch as f64 / YEAR).floor() as i64;
        warnings.push(format!("the trace would begin in the year {year}: are its times in another unit?"));
    }
    // Discards may be that long, and the metadata has only the longest request of all.
    if span.max_sectors > MAX_SECTORS && counts.others == 0 {
        let size = human::block(span.max_sectors.saturating_mul(SECTOR_BYTES));
        warnings.push(format!("the longest request would have {size}: are its lengths in another unit?"));
    }
    if span.max_end_sector > MAX_END_SECTOR {
        let size = human::block(span.max_end_sector.saturating_mul(SECTOR_BYTES));
        warnings.push(format!("the device would have {size} or more: are its positions in another unit?"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::metadata::Kind;

    fn warnings(requests: u64, last_ns: i64, epoch: Option<i64>, sectors: u64, end: u64) -> Vec<String> {
        let mut metadata = Metadata::new(Kind::Load, "x");
        metadata.counts.requests = requests;
        metadata.span.last_ns = last_ns;
        metadata.epoch_unix_ns = epoch;
        (metadata.span.max_sectors, metadata.span.max_end_sector) = (sectors, end);
        plausibility_warnings(&metadata)
    }

    #[test]
    fn plausible_values_give_no_warning() {
        assert_eq!(warnings(1_000_000, 3_600_000_000_000, Some(1_336_140_000_000_000_000), 2048, 1 << 35), [""; 0]);
        assert_eq!(warnings(5, 10, None, 8, 8), [""; 0]);
    }

    #[test]
    fn implausible_values_give_a_warning() {
        assert!(warnings(10, (250.0 * YEAR) as i64, None, 8, 8)[0].contains("years"));
        assert!(warnings(1_000_000, 3_000_000, None, 8, 8)[0].contains("1,000,000 requests would take 3 ms:"));
        assert!(warnings(1_000_000, 0, None, 8, 8)[0].contains("would take 0 s:"));
        assert!(warnings(10, 10, Some(0), 8, 8)[0].contains("1970"));
        let both = warnings(10, 10, None, 1 << 22, 1 << 50);
        assert!(both.len() == 2 && both[0].contains("2 GiB") && both[1].contains("512 PiB"), "{both:?}");
    }
}
