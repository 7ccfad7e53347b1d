//! The formats of the families, chosen by the client: text of Prometheus, OpenMetrics, and Prometheus' protobuf, the only one
//! with native histograms. The two texts are those of Prometheus' own library.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::families::{Family, Kind, Value};
use super::protobuf;
use super::run::Labels;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    OpenMetrics,
    Protobuf,
}

impl Format {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// The format that a client likes best, by its header `Accept`; of equal ones the first.
    pub fn accepted(accept: &str) -> Self {
        let mut best = (0.0, Self::Text);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
            let format = match parts.next().as_deref() {
                Some("application/openmetrics-text") => Self::OpenMetrics,
                Some("application/vnd.google.protobuf") => Self::Protobuf,
                Some("text/plain" | "text/*" | "*/*") => Self::Text,
                _ => continue,
            };
            let parameters: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
            let of = |key: &str| {
                let mut found = parameters.iter().filter_map(|part| part.split_once('='));
                found.find(|(name, _)| *name == key).map(|(_, value)| value.to_owned())
            };
            if format == Self::Protobuf && of("encoding").is_some_and(|encoding| encoding != "delimited") {
                continue;
            }
            let quality = of("q").and_then(|q| q.parse().ok()).unwrap_or(1.0_f64);
            if quality > best.0 {
                best = (quality, format);
            }
        }
        best.1
    }

    /// The families in this format.
    pub fn encode(self, families: Vec<Family>) -> Result<Vec<u8>, fmt::Error> {
        if self == Self::Protobuf {
            return Ok(protobuf::encode(&families));
        }
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Families(families)));
        let mut page = String::new();
        match self {
            Self::OpenMetrics => text::encode(&mut page, &registry)?,
            _ => prometheus_text::encode(&mut page, &registry)?,
        }
        Ok(page.into_bytes())
    }
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { name, help, unit, kind, samples } in &self.0 {
            let kind = match kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
            for (labels, value) in samples {
                if labels.is_empty() {
                    put(&mut family, kind, value)?;
                } else {
                    put(&mut family.encode_family(labels)?, kind, value)?;
                }
            }
        }
        Ok(())
    }
}

fn put(encoder: &mut MetricEncoder<'_>, kind: MetricType, value: &Value) -> fmt::Result {
    match value {
        // Whole numbers without a fraction: both texts allow it.
        Value::Number(number) if kind == MetricType::Counter && number.fract() == 0.0 => {
            encoder.encode_counter::<NoLabelSet, u64, f64>(&(*number as u64), None)
        }
        Value::Number(number) if kind == MetricType::Counter => {
            encoder.encode_counter::<NoLabelSet, f64, f64>(number, None)
        }
        Value::Number(number) if number.fract() == 0.0 => encoder.encode_gauge(&(*number as i64)),
        Value::Number(number) => encoder.encode_gauge(number),
        Value::Times(times) => {
            let mut before = 0;
            let buckets: Vec<(f64, u64)> = times
                .classic()
                .into_iter()
                .map(|(bound, below)| (bound as f64 / 1e9, below - std::mem::replace(&mut before, below)))
                .collect();
            encoder.encode_histogram::<Labels>(times.sum_s(), times.count(), &buckets, None)
        }
    }
}
