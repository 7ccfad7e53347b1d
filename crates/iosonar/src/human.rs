//! Numbers as people read them.

/// Bytes with a decimal unit: `1.5 MB`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// The length of a request, mostly a power of two: `64 KiB`.
pub fn block(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut whole = bytes;
    while whole > 0 && whole.is_multiple_of(1024) && unit + 1 < units.len() {
        whole /= 1024;
        unit += 1;
    }
    if whole < 10_000 { format!("{whole} {}", units[unit]) } else { scaled(bytes as f64, 1024.0, &units) }
}

/// A span of time: `850 µs`, `12.3 s`, `1 h 5 min`.
pub fn span(seconds: f64) -> String {
    if seconds.abs() < 60.0 {
        return match seconds.abs() {
            0.0 => "0 s".to_owned(),
            s if s < 1e-3 => format!("{:.1} µs", seconds * 1e6),
            s if s < 1.0 => format!("{:.2} ms", seconds * 1e3),
            _ => format!("{seconds:.2} s"),
        };
    }
    let whole = seconds.round() as i64;
    let parts = [(whole / 86_400, "d"), (whole / 3600 % 24, "h"), (whole / 60 % 60, "min"), (whole % 60, "s")];
    let first = parts.iter().position(|(n, _)| *n != 0).unwrap_or(3);
    let shown: Vec<String> =
        parts.iter().skip(first).take(2).filter(|(n, _)| *n != 0).map(|(n, unit)| format!("{n} {unit}")).collect();
    shown.join(" ")
}

/// A moment, given in nanoseconds since 1970: `2026-11-22 04:39:41 UTC`.
pub fn moment(unix_ns: i64) -> String {
    chrono::DateTime::from_timestamp_nanos(unix_ns).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// `1 request`, `2 requests`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The verb that goes with so many.
pub fn are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value.abs() >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 100.0);
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([bytes(0), bytes(999), bytes(1500), bytes(818_038)], ["0 B", "999 B", "1.5 kB", "818 kB"]);
        assert_eq!([block(512), block(65_536), block(3 << 20)], ["512 B", "64 KiB", "3 MiB"]);
        assert_eq!([block(7680), block(12_345_678)], ["7680 B", "11.8 MiB"]);
        assert_eq!([span(0.000_85), span(0.012), span(12.3)], ["850.0 µs", "12.00 ms", "12.30 s"]);
        assert_eq!([span(3599.9), span(3660.0), span(90_000.0)], ["1 h", "1 h 1 min", "1 d 1 h"]);
        assert_eq!(moment(1_336_140_000_999_999_999), "2012-05-04 14:00:00 UTC");
        assert_eq!([counted(0, "read"), counted(1, "read"), counted(2, "read")], ["0 reads", "1 read", "2 reads"]);
    }
}
