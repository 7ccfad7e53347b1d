//! Families as messages `io.prometheus.client.MetricFamily`, each after its length: the only format in which Prometheus reads
//! native histograms. The library can write it, but needs a compiler of protobuf and thirty more crates to build; these
//! are the messages in use.

use iosonar_pacing::live::{Distribution, SCHEMA};

use super::families::{Family, Kind, Value};
use super::run::Labels;

/// All families.
pub fn encode(families: &[Family]) -> Vec<u8> {
    let mut all = Vec::new();
    for family in families {
        let message = of_family(family);
        varint(&mut all, message.0.len() as u64);
        all.extend(message.0);
    }
    all
}

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(&mut self, field: u64, value: u64) {
        varint(&mut self.0, field << 3);
        varint(&mut self.0, value);
    }

    fn double(&mut self, field: u64, value: f64) {
        varint(&mut self.0, field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        varint(&mut self.0, field << 3 | 2);
        varint(&mut self.0, value.len() as u64);
        self.0.extend(value);
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Small numbers of either sign in few bytes.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn of_family(family: &Family) -> Message {
    let unit = family.unit.as_ref().map_or_else(String::new, |unit| format!("_{}", unit.as_str()));
    let (total, kind) = match family.kind {
        Kind::Counter => ("_total", 0),
        Kind::Gauge => ("", 1),
        Kind::Histogram => ("", 4),
    };
    let mut message = Message::default();
    message.bytes(1, format!("{}{unit}{total}", family.name).as_bytes());
    message.bytes(2, family.help.as_bytes());
    message.number(3, kind);
    for (labels, value) in &family.samples {
        message.bytes(4, &of_sample(labels, value, family.kind).0);
    }
    message
}

fn of_sample(labels: &Labels, value: &Value, kind: Kind) -> Message {
    let mut sample = Message::default();
    for (name, value) in labels {
        let mut pair = Message::default();
        pair.bytes(1, name.as_bytes());
        pair.bytes(2, value.as_bytes());
        sample.bytes(1, &pair.0);
    }
    match value {
        Value::Number(number) => {
            let mut content = Message::default();
            content.double(1, *number);
            sample.bytes(if kind == Kind::Counter { 3 } else { 2 }, &content.0);
        }
        Value::Times(times) => sample.bytes(7, &of_times(times).0),
    }
    sample
}

fn of_times(times: &Distribution) -> Message {
    let mut histogram = Message::default();
    histogram.number(1, times.count());
    histogram.double(2, times.sum_s());
    for (bound, below) in times.classic() {
        let mut bucket = Message::default();
        bucket.number(1, below);
        bucket.double(2, bound as f64 / 1e9);
        histogram.bytes(3, &bucket.0);
    }
    histogram.number(5, zigzag(SCHEMA.into()));
    // Times are whole nanoseconds, so only 0 is below.
    histogram.double(6, 1e-10);
    histogram.number(7, times.zeros());
    let (spans, deltas) = spans(&times.native());
    for (offset, length) in spans {
        let mut span = Message::default();
        span.number(1, zigzag(offset));
        span.number(2, length);
        histogram.bytes(12, &span.0);
    }
    let mut packed = Vec::new();
    deltas.into_iter().for_each(|delta| varint(&mut packed, zigzag(delta)));
    if !packed.is_empty() {
        histogram.bytes(13, &packed);
    }
    histogram
}

/// Runs of buckets, each with its distance from the one before and its length; and the differences of all counts.
fn spans(buckets: &[(i32, u64)]) -> (Vec<(i64, u64)>, Vec<i64>) {
    let (mut spans, mut deltas): (Vec<(i64, u64)>, Vec<i64>) = Default::default();
    let (mut next, mut before) = (0, 0);
    for &(index, count) in buckets {
        match spans.last_mut() {
            Some((_, length)) if index == next => *length += 1,
            _ => spans.push((i64::from(index - next), 1)),
        }
        deltas.push(count as i64 - before);
        (next, before) = (index + 1, count as i64);
    }
    (spans, deltas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_native_buckets_have_their_distances() {
        let (spans, deltas) = spans(&[(-20, 5), (-19, 3), (-10, 4)]);
        assert_eq!(spans, [(-20, 2), (8, 1)]);
        assert_eq!(deltas, [5, -2, 1]);
    }

    #[test]
    fn numbers_are_written_as_in_the_specification() {
        let mut out = Vec::new();
        varint(&mut out, 300);
        assert_eq!(out, [0xac, 0x02]);
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }
}
